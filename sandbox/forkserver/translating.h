/* The command that converts; see translating.c. */
void translate(char **at);
