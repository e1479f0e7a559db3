/* SPDX-License-Identifier: Apache-2.0
 *
 * transient.h: temporary failures: shortages of the process or the machine. A failure is noted on the thread on which it occurs. The caller
 * that decides whether to try again reads and clears the note. */
#ifndef QN_TRANSIENT_H
#define QN_TRANSIENT_H

/* Notes the failure of a system call, by its errno, if it may pass: descriptors, memory, threads, room on a disk. errno is kept. */
void qn_transient_note(int error);

/* The same of dlopen. text: dlerror's, which says it where errno does not. */
void qn_transient_note_text(int error, const char *text);

/* Whether one was noted on this thread since the last call of this function. */
int qn_transient_take(void);

#endif
