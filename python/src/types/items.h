/* SPDX-License-Identifier: Apache-2.0
 *
 * items.h: the values of a tensor in the host's memory, as Python's numbers and as text. */
#ifndef QUERN_PYTHON_ITEMS_H
#define QUERN_PYTHON_ITEMS_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* The number of items, and the address of the first. The tensor has been imported: no overflow. */
int64_t tensor_n_items(const DLTensor *tensor);
void *tensor_first(const DLTensor *tensor);

/* bool, int, float or complex: the item's value exactly. `address` needs no alignment. */
PyObject *value_object(DLDataType type, const char *address);

/* All values, in nested lists; of 0 dimensions the value itself. */
PyObject *values_list(const DLTensor *tensor);

/* The values for repr: floats with the fewest digits that are unique; above 1000 items only the first and last ones of each
 * dimension. Each row of the inner dimension is a line; lines after the first are indented by `indent` blanks, at
 * most 31. */
PyObject *values_text(const DLTensor *tensor, int indent);

#endif
