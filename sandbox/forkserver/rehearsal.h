/* What libraries prepare at their first use, done before there is a run; see rehearsal.c. */

void rehearse(void);
