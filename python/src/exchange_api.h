/* exchange_api.h: DLPack's C exchange API: that of other types, and quern.Array's own. Called with the GIL. */
#ifndef QUERN_PYTHON_EXCHANGE_API_H
#define QUERN_PYTHON_EXCHANGE_API_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* The C exchange API of major version 1 of a type, NULL where it has none. Looked up anew: callers keep it per type. May
 * leave an exception that is none of its business (KeyboardInterrupt, of a metaclass). */
const DLPackExchangeAPI *exchange_api_of(PyTypeObject *type);

/* quern.Array's own, as the capsule that its type has in __dlpack_c_exchange_api__. */
PyObject *exchange_api_capsule(void);

#endif
