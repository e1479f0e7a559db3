/* SPDX-License-Identifier: Apache-2.0
 *
 * spelled.h: names as strings. A generated tree has this library's identifiers under its own prefix, and strings as they are. */
#ifndef QN_SPELLED_H
#define QN_SPELLED_H

/* A public name, a variable's or a kernel's, as a string: that of the tree, in a tree. */
#define QN_SPELLED(name) #name

#endif
