-- SPDX-License-Identifier: Apache-2.0
--
-- The version of the numbers that generated kernels give, for generated files. (The library's own version: model.version, of quern.h.)

return {
  NUMERICS = 7, -- changes when the bits of any result do
}
