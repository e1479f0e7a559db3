/* SPDX-License-Identifier: Apache-2.0
 *
 * hint.h: what is added to an error at a place of an expression, by the tokens there: that '//' divides, or what a word of another
 * language is here. gen/front/hint.lua gives the same. */
#ifndef QN_HINT_H
#define QN_HINT_H

#include "lang/syntax.h"

#define QN_HINT_BYTES 160

/* "": there is nothing to say. */
void qn_hint(const qn_source *source, uint32_t at, char hint[QN_HINT_BYTES]);

#endif
