/* What libraries prepare at their first use, done before there is a run; see warmup.c. */

void warm_up(void);
