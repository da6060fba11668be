/*
 * A conversation with one run of ogr2ogr: it opens a file, copies it into memory, reports its content, waits, converts
 * what it holds as often as required, rereads what it wrote, and ends. A file is therefore parsed once, and one process
 * does what would otherwise take one process per step.
 *
 * `ogr2ogr --session QUESTIONS ANSWERS` reads commands from one pipe and writes answers to the other. Both consist of a
 * length of four bytes and a body. A command is a sequence of zero-terminated texts, the first of which is its name; lists
 * in it end with an empty text. An answer is JSON. A command that takes long reports which share of it is done, by lengths
 * without a body that no answer has.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "archive_search.h"
#include "counting.h"
#include "crs.h"
#include "csv.h"
#include "editing.h"
#include "gdal.h"
#include "gdal_messages.h"
#include "geojson.h"
#include "loading.h"
#include "odd_times.h"
#include "postprocessing.h"
#include "progress.h"
#include "question.h"
#include "session.h"
#include "sheet_writing.h"
#include "straying.h"
#include "translating.h"
#include "usual_values.h"
#include "waiting.h"
#include "workbook.h"
#include "workbook_styles.h"
#include "writing.h"

static void look(char **at)
{
    examine_csv(at[0], at[1] ? at[1] : "");
    tell_messages();
}

static void examine(char **at)
{
    examine_workbook(at[0]);
    tell_messages();
}

/* Whether a part of an archive holds one of some texts or covered values, or rows that its driver does not reach. */
static void seek(char **at)
{
    int ok = at[0] && at[1] && at[2];
    struct part_search found = ok ? search_part(at[0], at[1], at + 2) : (struct part_search){0, 0};
    put("{\"holds\":%s,\"stops\":%s,", found.text ? "true" : "false", found.rows ? "true" : "false");
    end_answer("", ok);
}

static void restyle(char **at)
{
    int ok = at[0] && at[1] && at[2] && copy_with_formats(at[0], at[1], at + 2);
    end_answer("{", ok);
}

/* Copy a file of separated values under a new header, and write the types of its columns beside it. */
static void head(char **at)
{
    int is_whole = at[0] && at[1] && at[2] && at[3] && at[4] && at[5];
    int ok = is_whole && copy_under_header(at[0], at[1], strtoull(at[2], NULL, 10), at[3]) && write_text(at[4], at[5]);
    end_answer("{", ok);
}

/* The options of GDAL that the next command has, by name and value. */
static char **configured;

static void configure(char **at)
{
    for (configured = at; at[0] && at[1]; at += 2)
        CPLSetConfigOption(at[0], at[1]);
    end_answer("{", !at[0]);
}

/* Take back to what the environment says. */
static void reset_options(void)
{
    for (char **at = configured; at && at[0] && at[1]; at += 2)
        CPLSetConfigOption(at[0], NULL);
    configured = NULL;
}

static void declare(char **at)
{
    end_answer("{", at[0] && at[1] && at[2] && declare_attributes(at[0], at[1], at[2]));
}

static void gather(char **at)
{
    end_answer("{", at[0] && at[1] && at[2] && gather_lines(at[0], at[1], at[2]));
}

static void lines(char **at)
{
    end_answer("{", at[0] && at[1] && write_lines_of_wkt(at[0], at[1]));
}

static void even(char **at)
{
    end_answer("{", at[0] && at[1] && at[2] && even_rows(at[0], at[1], at[2]));
}

static void turn(char **at)
{
    end_answer("{", at[0] && turn_holes(at[0]));
}

static void count(char **at)
{
    const char *name = *at++;
    int64_t most_cells = *at ? atoll(*at++) : 0;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    refused = NULL;
    put("{\"layers\":[");
    int is_read = count_result(name, most_cells, (options)drivers, (options)open_options);
    end_answer("],", is_read && !refused);
}

static void compare(char **at)
{
    const char *name = *at++;
    int code = *at ? atoi(*at++) : 0;
    char **drivers = take_list(&at), **open_options = take_list(&at);
    int is_read = compare_system(name, code, (options)drivers, (options)open_options);
    end_answer(",", is_read);
}

/* What strays by more than some meters, or is torn, in the layers of the given names that are held, or, without names, in all layers of what is open. */
static void stray(char **at)
{
    enum { SOURCE, TARGET, METERS, LEAST, MOST, WRAPS, SHORTEST, NAMES };
    int told = 0;
    for (int given = 0; given < NAMES; given++)
        if (!at[given])
            return;
    int source_code = atoi(at[SOURCE]), target_code = atoi(at[TARGET]);
    double meters = strtod(at[METERS], NULL);
    struct reach reach = {strtod(at[LEAST], NULL), strtod(at[MOST], NULL)};
    int wraps = atoi(at[WRAPS]), is_shortest = atoi(at[SHORTEST]);
    char **names = at + NAMES;
    int ok = store_waiting();
    put("{\"layers\":[");
    for (int number = 0, layers = *names || !latest ? 0 : GDALDatasetGetLayerCount(latest); number < layers; number++) {
        put(told++ ? "," : "");
        tell_strays(GDALDatasetGetLayer(latest, number), source_code, target_code, meters, reach, wraps, is_shortest);
    }
    for (; *names; names++) {
        handle layer = stayed && strcmp(*names, stayed_table) == 0 ? stayed : memory ? GDALDatasetGetLayerByName(memory, *names) : NULL;
        put(told++ ? "," : "");
        if (layer)
            tell_strays(layer, source_code, target_code, meters, reach, wraps, is_shortest);
        else
            put("{}");
    }
    end_answer("],", ok);
}

static void tally(char **at)
{
    count_geojson(at[0]);
    tell_messages();
}

static void tally_lines(char **at)
{
    count_lines_of_wkt(at[0]);
    tell_messages();
}

/* How many times in zones that their driver does not keep some files hold. */
static void zones(char **at)
{
    int64_t found = 0;
    while (*at)
        found += count_odd_times(*at++);
    put("{\"count\":%lld", (long long)found);
    end_answer(",", 1);
}

static const struct {
    const char *name;
    void (*carry_out)(char **);
} commands[] = {
    {"open", open_source},
    {"look", look},
    {"head", head},
    {"examine", examine},
    {"restyle", restyle},
    {"seek", seek},
    {"load", load},
    {"alter", alter},
    {"place", place},
    {"query", query},
    {"stray", stray},
    {"configure", configure},
    {"translate", translate},
    {"sheets", write_sheets},
    {"declare", declare},
    {"gather", gather},
    {"lines", lines},
    {"even", even},
    {"turn", turn},
    {"count", count},
    {"compare", compare},
    {"tally", tally},
    {"tally_lines", tally_lines},
    {"zones", zones},
};

int converse(const char *question_pipe, const char *answer_pipe)
{
    char **texts;
    int questions = open(question_pipe, O_RDONLY | O_CLOEXEC);
    int answers = open(answer_pipe, O_WRONLY | O_CLOEXEC);
    if (questions < 0 || answers < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN); /* a run that is abandoned while it answers has not crashed */
    GDALAllRegister();
    CPLSetErrorHandler(keep_message);
    /* Nobody else opens a database of this run, so SQLite takes its locks once instead of for each statement, and looks for
     * a journal and a log once. One with a write-ahead log cannot be opened so; GDAL then opens it as one that never changes. */
    CPLSetConfigOption("OGR_SQLITE_PRAGMA", "locking_mode=EXCLUSIVE");
    add_usual_values();
    while ((texts = next_command(questions))) {
        size_t number = 0, known = sizeof commands / sizeof *commands;
        while (number < known && strcmp(commands[number].name, texts[0]) != 0)
            number++;
        if (number == known || !texts[1])
            return 1;
        begin_reports(answers);
        forget_messages();
        commands[number].carry_out(texts + 1);
        if (commands[number].carry_out != configure)
            reset_options();
        send_answer(answers);
    }
    return 0;
}
