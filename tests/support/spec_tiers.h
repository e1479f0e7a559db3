/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_tiers.h: the tiers in which tests call ops of specs that arrive at run time: interpreted, and compiled where a compiler of
 * kernels is here. */
#ifndef QUERN_TESTS_SPEC_TIERS_H
#define QUERN_TESTS_SPEC_TIERS_H

#include "expressions.h"

typedef struct spec_tier {
  const char *name, *explained; /* explained: the tier as explain says it */
  int32_t jit;
} spec_tier;

static spec_tier spec_tiers[2] = {{"interpreted", "interpreter", QUERN_JIT_OFF}};
static int n_spec_tiers = 1;

/* Whether specs can be loaded at run time. If not, says so as a skipped test. */
static int has_specs(void) {
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const quern_status status = load_spec(ctx, "empty.lua", "");
  quern_ctx_release(ctx);
  if (status) skip(1, "no specs at run time here: %s", quern_last_error());
  return status == QUERN_OK;
}

static void find_spec_tiers(void) {
  find_compiler();
  if (compiler)
    spec_tiers[n_spec_tiers++] = (spec_tier){"compiled", compiler, QUERN_JIT_SYNC};
  else
    skip(1, "no compiler of kernels is here");
}

#endif
