// SPDX-License-Identifier: Apache-2.0
//
// tree.cc: a program that uses the C++ header of a generated tree.
#include <cstdio>
#include <vector>

#include "acme.hpp"

int main() {
  std::vector<float> x = {1, 2, -3}, y(3);
  float total = 0;
  acme::minus(x, x, y);
  if (y[0] != 0 || y[2] != 0) return 1;
  acme::clip(x, y, {{"min", 0}});
  acme::sum(y, total);
  if (total != 3) return 2;
  float grid[2][3] = {{1, 2, 3}, {4, 5, 6}}, rows[2];
  acme::sum(acme::View(&grid[0][0], {2, 3}), rows, {{"axes", acme::Axes{-1}}});
  if (rows[0] != 6 || rows[1] != 15) return 3;
  acme::sum(acme::View(&grid[0][0], {2, 3}), total, {{"axes", acme::Axes::all()}});
  if (total != 21) return 4;
  try {
    acme::sum(acme::View(&grid[0][0], {2, 3}), rows, {{"axes", -1}});
    return 5;
  } catch (const acme::Error &error) {
    if (error.status() != ACME_E_ARGUMENT) return 6;
  }
  try {
    acme::sum(x, y, {{"axes", acme::Axes{-1}}});
  } catch (const acme::Error &error) {
    if (error.status() == ACME_E_SHAPE) std::puts("done");
  }
}
