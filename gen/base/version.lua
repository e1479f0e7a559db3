-- What generated files say of what made them.

return {
  GENERATOR = "0.1.0",
  NUMERICS = 1, -- changes when the bits of any result do
}
