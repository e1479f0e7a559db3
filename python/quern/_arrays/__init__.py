# SPDX-License-Identifier: Apache-2.0
"""quern.Array's side of the array API: views, items, creation, dtypes. quern.array_api has the public names."""
