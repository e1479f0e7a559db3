/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_api.h: DLPack's C exchange API: that of other types, and quern.Array's own. Called with the GIL. */
#ifndef QUERN_PYTHON_EXCHANGE_API_H
#define QUERN_PYTHON_EXCHANGE_API_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* The C exchange API of major version 1 of a type; NULL: it has none. Not cached: callers keep it per type. May leave an
 * exception of foreign code (KeyboardInterrupt, of a metaclass). */
const DLPackExchangeAPI *exchange_api_of(PyTypeObject *type);

/* quern.Array's own, as the capsule for __dlpack_c_exchange_api__. */
PyObject *exchange_api_capsule(void);

#endif
