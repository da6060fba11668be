/* The command that converts; see translating.c. */
#pragma GCC visibility push(hidden)

void translate(char **at);

#pragma GCC visibility pop
