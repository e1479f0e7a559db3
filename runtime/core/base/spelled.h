/* SPDX-License-Identifier: Apache-2.0
 *
 * spelled.h: public names as strings. A generated tree has identifiers under its own prefix; other strings are unchanged. */
#ifndef QN_SPELLED_H
#define QN_SPELLED_H

/* A public name (of a function, an environment variable, a kernel) as a string; in a generated tree with the tree's prefix. */
#define QN_SPELLED(name) #name

#endif
