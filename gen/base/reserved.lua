-- SPDX-License-Identifier: Apache-2.0
--
-- Words that cannot be names in generated C or C++: keywords, and macros that compilers define in lower case. A set. Pure.

local M = {}

for word in ([[
  auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return
  short signed sizeof static struct switch typedef union unsigned void volatile while
  alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual
  asm linux unix i386
  and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept consteval constinit
  const_cast decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private
  protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
]]):gmatch "%S+" do M[word] = true end

return M
