-- SPDX-License-Identifier: Apache-2.0
--
-- What generated files say of the numbers that their kernels give. (The library's own version: model.version, of quern.h.)

return {
  NUMERICS = 4, -- changes when the bits of any result do
}
