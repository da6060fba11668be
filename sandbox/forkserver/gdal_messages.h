/* What GDAL says while a command of a session is carried out; see gdal_messages.c. */
/* Keep a message for the answer; the handler of GDAL's errors. */
void keep_message(int kind, int number, const char *text);

void forget_messages(void);

/* Whether one of the messages was a failure. */
int has_failed(void);

/* End the answer with the messages. */
void tell_messages(void);

/* Put `before`, which ends what precedes in the answer, whether the command was carried out, and the messages. */
void end_answer(const char *before, int ok);
