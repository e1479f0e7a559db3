/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.h: the program's commands. Each takes what follows its name and returns the program's exit status. */
#ifndef QUERN_PROGRAM_COMMANDS_H
#define QUERN_PROGRAM_COMMANDS_H

int command_run(int argc, char **argv);
int command_ops(int argc, char **argv);
int command_show(int argc, char **argv);
int command_info(int argc, char **argv);
int command_cache(int argc, char **argv);
int command_help(int argc, char **argv);
int command_version(int argc, char **argv);

#endif
