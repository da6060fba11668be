/*
 * What a program does that wants out. `hostile ACTION [ARGUMENT]` exits with 0 when the action succeeded and with 1 when
 * it was refused; `hostile --optfile X` takes both from its input, as a waiting ogr2ogr does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int opens(const char *path, int flags)
{
    int descriptor = open(path, flags, 0644);
    return descriptor >= 0 && (flags & O_WRONLY ? write(descriptor, "x", 1) == 1 : read(descriptor, &(char){0}, 1) >= 0);
}

static int reaches(int kind, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int link = socket(AF_INET, kind, 0);
    return link >= 0 && connect(link, (struct sockaddr *)&address, sizeof address) == 0 && send(link, "canary", 6, 0) == 6;
}

static int reaches_local(const char *name, int abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + abstract, name, sizeof address.sun_path - 2);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)abstract + strlen(name) + !abstract);
    int link = socket(AF_UNIX, SOCK_STREAM, 0);
    return link >= 0 && connect(link, (struct sockaddr *)&address, length) == 0;
}

static int forks(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child > 0;
}

static int bombs(void)
{
    int made = 0;
    for (int round = 0; round < 20000; round++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                fork();
        made += child > 0;
    }
    return made > 0;
}

/* A daemon that leaves its session, its group and its parent behind, and says that it lives. */
static int leaves_a_daemon(void)
{
    for (int generation = 0; generation < 3; generation++) {
        pid_t child = fork();
        if (child < 0)
            return 0;
        if (child > 0)
            return usleep(200000) == 0;
        setsid();
    }
    close(open("daemon", O_CREAT | O_WRONLY, 0644));
    for (;;)
        pause();
}

static int raises_limit(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

static int lists(const char *path)
{
    DIR *directory = opendir(path);
    return directory && readdir(directory);
}

static int executes(const char *path)
{
    char *arguments[] = {(char *)path, "-c", "exit 0", NULL};
    return execve(path, arguments, NULL) == 0;
}

static int is_user(const char *other)
{
    return setresuid((uid_t)atoi(other), (uid_t)atoi(other), (uid_t)atoi(other)) == 0;
}

/* Files of a MiB each that no directory names, held in one of the ways there are, for a third of a second for each. */
static int holds(const char *way, int files)
{
    static char mebibyte[1 << 20];
    for (int number = 0; number < files; number++) {
        int descriptor = open("held", O_CREAT | O_RDWR | O_EXCL, 0644);
        if (descriptor < 0 || write(descriptor, mebibyte, sizeof mebibyte) != sizeof mebibyte)
            return 0;
        if (!strcmp(way, "mapped") && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0) == MAP_FAILED)
            return 0;
        if (!strcmp(way, "mapped"))
            close(descriptor);
        if (!strcmp(way, "replaced")) {
            close(open("other", O_CREAT | O_WRONLY, 0644));
            if (rename("other", "held") < 0)
                return 0;
        }
        if (unlink("held") < 0)
            return 0;
    }
    return usleep(300000u * (unsigned)files) == 0;
}

static int holds_directories(int count)
{
    for (int number = 0; number < count; number++)
        if (mkdir("held", 0755) < 0 || open("held", O_RDONLY | O_DIRECTORY) < 0 || rmdir("held") < 0)
            return 0;
    return usleep(300000u * (unsigned)count) == 0;
}

/* Room for a file beyond its end is given at once, and neither its size nor the limit of a file's size tells of it. */
static int takes_room(int flags)
{
    int descriptor = open("room", O_CREAT | O_RDWR, 0644);
    return descriptor >= 0 && fallocate(descriptor, flags, 0, 64 << 20) == 0;
}

static void *wait_forever(void *nothing)
{
    pause();
    return nothing;
}

static int makes_a_thread(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, wait_forever, NULL) == 0;
}

/* A thread that shares neither the descriptors nor anything that would show them. */
static int makes_a_thread_apart(void)
{
    static char stack[1 << 16];
    return clone((int (*)(void *))wait_forever, stack + sizeof stack, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL) > 0;
}

/* The parent's memory, wherever that is: an address that it does not have shows that it could be asked. */
static int reads_parent(void)
{
    char here, *there = &here;
    struct iovec own = {&here, 1}, other = {there, 1};
    return process_vm_readv(getppid(), &own, 1, &other, 1, 0) == 1 || errno == EFAULT;
}

static int takes_a_descriptor_of_parent(void)
{
    int parent = (int)syscall(SYS_pidfd_open, getppid(), 0);
    return parent >= 0 && syscall(SYS_pidfd_getfd, parent, 0, 0) >= 0;
}

static int counts_events(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .exclude_kernel = 1};
    return syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) >= 0;
}

static int makes_a_namespace_with_a_process(void)
{
    struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_NEWNS, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    return child > 0;
}

static int shares_by_number(void)
{
    return shmget(IPC_PRIVATE, 4096, 0600) >= 0 || msgget(IPC_PRIVATE, 0600) >= 0 || semget(IPC_PRIVATE, 1, 0600) >= 0;
}

/* What is open leads past layers that guard names; pipes are the run's own. */
static int holds_what_is_not_its_own(void)
{
    struct stat status;
    for (int descriptor = 0; descriptor < 1024; descriptor++)
        if (fstat(descriptor, &status) == 0 && !S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode))
            return 1;
    return 0;
}

static int act(const char *action, const char *argument)
{
    struct stat status;
#define IF(name, attempt) if (!strcmp(action, name)) return attempt
    IF("nothing", 1);
    IF("read", opens(argument, O_RDONLY));
    IF("write", opens(argument, O_WRONLY | O_CREAT));
    IF("stat", stat(argument, &status) == 0);
    IF("list", lists(argument));
    IF("tcp", reaches(SOCK_STREAM, argument));
    IF("udp", reaches(SOCK_DGRAM, argument));
    IF("unix socket", reaches_local(argument, 0));
    IF("abstract socket", reaches_local(argument, 1));
    IF("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
    IF("netlink socket", socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
    IF("fork", forks());
    IF("fork bomb", bombs());
    IF("daemon", leaves_a_daemon());
    IF("execute", executes(argument));
    IF("ptrace parent", ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0);
    IF("ptrace init", ptrace(PTRACE_ATTACH, 1, 0, 0) == 0);
    IF("signal parent", kill(getppid(), SIGCONT) == 0);
    IF("signal all", kill(-1, SIGCONT) == 0);
    IF("limit parent", syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, &(struct rlimit){9, 9}, NULL) == 0);
    IF("mount", mount("none", ".", "tmpfs", 0, NULL) == 0);
    IF("remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
    IF("new namespace", unshare(CLONE_NEWUSER) == 0);
    IF("change root", chroot(".") == 0);
    IF("become user", is_user(argument));
    IF("symbolic link", symlink("/etc/passwd", "link") == 0);
    IF("hard link", link(argument, "hard") == 0);
    IF("pipe file", mkfifo("pipe", 0644) == 0);
    IF("device", mknod("device", S_IFBLK | 0600, 0x801) == 0);
    IF("rename out", rename("in", argument) == 0);
    IF("raise limit", raises_limit());
    IF("io_uring", syscall(425, 8, (char[200]){0}) >= 0);
    IF("anonymous file", syscall(SYS_memfd_create, "x", 0) >= 0);
    IF("keyring", syscall(SYS_keyctl, 0, -3, 1) >= 0);
    IF("kernel program", syscall(SYS_bpf, 0, (char[128]){0}, 128) >= 0);
    IF("page faults", syscall(SYS_userfaultfd, O_CLOEXEC | 1) >= 0);
    IF("memory of parent", reads_parent());
    IF("descriptor of parent", takes_a_descriptor_of_parent());
    IF("count events", counts_events());
    IF("share by number", shares_by_number());
    IF("new file system", syscall(430, "tmpfs", 0) >= 0);
    IF("copy of a mount", syscall(428, AT_FDCWD, ".", 1) >= 0);
    IF("process in a new namespace", makes_a_namespace_with_a_process());
    IF("secret memory", syscall(447, 0) >= 0);
    IF("open descriptor", holds_what_is_not_its_own());
    IF("host name", sethostname("x", 1) == 0);
    IF("hold open", holds("open", atoi(argument)));
    IF("hold mapped", holds("mapped", atoi(argument)));
    IF("hold replaced", holds("replaced", atoi(argument)));
    IF("hold directories", holds_directories(atoi(argument)));
    IF("take room", takes_room(0));
    IF("take room beyond the end", takes_room(FALLOC_FL_KEEP_SIZE));
    IF("thread", makes_a_thread());
    IF("thread apart", makes_a_thread_apart());
    IF("extended attribute", setxattr("in", "user.x", argument, 1, 0) == 0);
    IF("x32 call", syscall(0x40000000 | 39) >= 0);
    return 1;
}

int main(int count, char **arguments)
{
    static char text[8192], action[4096], argument[4096];
    if (count > 1 && !strcmp(arguments[1], "--optfile")) {
        if (fread(text, 1, sizeof text - 1, stdin) == 0 || sscanf(text, "\"%4095[^\"]\"\n\"%4095[^\"]\"", action, argument) < 1)
            return 2;
    } else if (count > 1) {
        strncpy(action, arguments[1], sizeof action - 1);
        strncpy(argument, count > 2 ? arguments[2] : "", sizeof argument - 1);
    }
    int done = act(action, argument);
    if (!done)
        perror(action);
    return !done;
}
