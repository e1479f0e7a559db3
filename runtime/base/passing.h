/* SPDX-License-Identifier: Apache-2.0
 *
 * passing.h: failures that may pass: the process or the machine is short of something now. They are noted on the thread on which they
 * occur, and taken by whoever decides if something is tried again. */
#ifndef QN_PASSING_H
#define QN_PASSING_H

/* Notes the failure of a system call, by its errno, if it may pass: descriptors, memory, threads, room on a disk. errno is kept. */
void qn_passing_note(int error);

/* The same of dlopen. text: dlerror's, which says it where errno does not. */
void qn_passing_note_text(int error, const char *text);

/* Whether one was noted on this thread since the last call of this function. */
int qn_passing_take(void);

#endif
