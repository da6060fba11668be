/* A conversation with one run of ogr2ogr; see session.c. */

/* Carry out the commands that come by one pipe and answer by the other, to the end of the commands. Returns an exit code. */
int converse(const char *question_pipe, const char *answer_pipe);
