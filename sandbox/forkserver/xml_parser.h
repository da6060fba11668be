/* Results in XML that are counted as their text is parsed, without a driver; see xml_parser.c. */

/* What is called at the beginning of an element, with its attributes, at its end, and with a piece of the text between. */
typedef void begin_call(void *context, const char *element, const char **attributes);
typedef void end_call(void *context, const char *element);
typedef void text_call(void *context, const char *text, int size);

/* Parse a file, which may be in an archive. Returns 0 if it is no XML, or has what we do not write; see xml_parser.c. */
int parse_xml(const char *name, void *context, begin_call *begin, end_call *end, text_call *text);

/* The value of an attribute; NULL if there is none. */
const char *value_in(const char **attributes, const char *attribute);

/* Put the layers of a result into the answer. Return 0, and have put nothing, if its driver must read it. */
int count_kml(const char *name);
int count_gpx(const char *name);
int count_gml(const char *name);
int count_xlsx(const char *name);
int count_ods(const char *name);
