// Loads a running `cairn serve` over several keep-alive connections and prints rates.
// cc -O2 -pthread scripts/server-load.c -o server-load
// server-load PORT TOKEN MODE CONNECTIONS SECONDS [BATCH]     MODE: save, small, lookup, feed
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int port, batch = 200;
static const char *token, *mode;
static double seconds;

struct load { int number; long requests, records, failures; double slowest; };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static int dial(void) {
  int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
  if (connect(s, (struct sockaddr *)&a, sizeof a)) { perror("connect"); exit(1); }
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return s;
}

// Sends a request and reads the whole answer into *answer. Returns the HTTP status.
static int exchange(int s, const char *operation, const char *body, size_t length, char **answer, size_t *room) {
  char head[1024];
  int n = snprintf(head, sizeof head,
    "POST /database/1/iCloud.load/production/private/%s?ckWebAuthToken=%s&cairn=page%%3D2000 HTTP/1.1\r\n"
    "Host: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n", operation, token, length);
  struct { const char *p; size_t n; } parts[] = {{head, n}, {body, length}};
  for (int i = 0; i < 2; i++)
    for (size_t done = 0; done < parts[i].n;) {
      ssize_t k = write(s, parts[i].p + done, parts[i].n - done);
      if (k <= 0) { perror("write"); exit(1); }
      done += k;
    }
  size_t have = 0, need = 0, header = 0;
  while (!need || have < need) {
    if (*room - have < 65536) *answer = realloc(*answer, *room = *room * 2 + 131072);
    ssize_t k = read(s, *answer + have, *room - have - 1);
    if (k <= 0) { perror("read"); exit(1); }
    have += k;
    (*answer)[have] = 0;
    char *end;
    if (!need && (end = strstr(*answer, "\r\n\r\n"))) {
      header = end + 4 - *answer;
      char *l = strstr(*answer, "Content-Length: ");
      need = header + (l ? strtoul(l + 16, NULL, 10) : 0);
    }
  }
  int status = atoi(*answer + 9);
  memmove(*answer, *answer + header, have - header + 1);
  return status;
}

static size_t save(char *out, int load, long first, int count) {
  char *p = out;
  p += sprintf(p, "{\"zoneID\":{\"zoneName\":\"Load%d\"},\"desiredKeys\":[],\"operations\":[", load);
  for (int i = 0; i < count; i++)
    p += sprintf(p, "%s{\"operationType\":\"forceReplace\",\"record\":{\"recordName\":\"item:%08lx-%04d-4c1e\",\"recordType\":\"item\",\"fields\":{"
      "\"title\":{\"value\":\"Buy bread and milk %ld\",\"type\":\"STRING\"},\"note\":{\"value\":\"from the shop at the corner\",\"type\":\"STRING\"},"
      "\"count\":{\"value\":%ld,\"type\":\"INT64\"},\"price\":{\"value\":%ld.25,\"type\":\"DOUBLE\"},\"done\":{\"value\":%d,\"type\":\"INT64\"},"
      "\"list\":{\"value\":{\"recordName\":\"list:%ld\",\"action\":\"NONE\"},\"type\":\"REFERENCE\"},"
      "\"cairn_clocks\":{\"value\":\"AAECAwQFBgcICQoLDA0ODw==\",\"type\":\"BYTES\"}}}}",
      i ? "," : "", (first + i) * 2654435761u & 0xffffffff, load, first + i, first + i, (first + i) % 100, i & 1, (first + i) % 50);
  p += sprintf(p, "]}");
  return p - out;
}

static void *run(void *argument) {
  struct load *load = argument;
  char *body = malloc(batch * 800 + 4096), *answer = NULL;
  size_t room = 0;
  int s = dial();
  long next = strcmp(mode, "lookup") ? (long)(now() * 1000) % 100000000 * 10 : 0;
  char query[256];
  for (double end = now() + seconds; now() < end;) {
    double start = now();
    int status;
    if (!strcmp(mode, "feed")) {
      char since[128] = "";
      do {
        snprintf(query, sizeof query, "{\"zones\":[{\"zoneID\":{\"zoneName\":\"Load%d\"}%s}]}", load->number, since);
        status = exchange(s, "changes/zone", query, strlen(query), &answer, &room);
        for (char *p = answer; (p = strstr(p, "\"recordName\":\"item:")); p++) load->records++;
        load->requests++;
        char *t = strstr(answer, "\"syncToken\":\"");
        if (t) snprintf(since, sizeof since, ",\"syncToken\":\"%.48s\"", t + 13);
      } while (strstr(answer, "\"moreComing\":true"));
    } else if (!strcmp(mode, "lookup")) {
      snprintf(query, sizeof query, "{\"zoneID\":{\"zoneName\":\"Load%d\"},\"records\":[{\"recordName\":\"item:x\"}]}", load->number);
      status = exchange(s, "records/lookup", query, strlen(query), &answer, &room);
      load->requests++;
    } else {
      int count = strcmp(mode, "small") ? batch : 1;
      size_t length = save(body, load->number, next, count);
      status = exchange(s, "records/modify", body, length, &answer, &room);
      if (strstr(answer, "serverErrorCode")) load->failures++;
      load->requests++;
      load->records += count;
      next += count;
    }
    if (status != 200) load->failures++;
    if (now() - start > load->slowest) load->slowest = now() - start;
  }
  close(s);
  free(body);
  free(answer);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 6) { fprintf(stderr, "server-load PORT TOKEN save|small|lookup|feed CONNECTIONS SECONDS [BATCH]\n"); return 2; }
  port = atoi(argv[1]);
  token = argv[2];
  mode = argv[3];
  int connections = atoi(argv[4]);
  seconds = atof(argv[5]);
  if (argc > 6) batch = atoi(argv[6]);
  struct load loads[64] = {{0}};
  pthread_t threads[64];
  char *answer = NULL, body[256];
  size_t room = 0;
  int s = dial();
  for (int i = 0; i < connections; i++) {
    snprintf(body, sizeof body, "{\"operations\":[{\"operationType\":\"create\",\"zone\":{\"zoneID\":{\"zoneName\":\"Load%d\"}}}]}", i);
    if (exchange(s, "zones/modify", body, strlen(body), &answer, &room) != 200) { fprintf(stderr, "%s\n", answer); return 1; }
    loads[i].number = i;
  }
  double start = now();
  for (int i = 0; i < connections; i++) pthread_create(&threads[i], NULL, run, &loads[i]);
  struct load sum = {0};
  for (int i = 0; i < connections; i++) {
    pthread_join(threads[i], NULL);
    sum.requests += loads[i].requests;
    sum.records += loads[i].records;
    sum.failures += loads[i].failures;
    if (loads[i].slowest > sum.slowest) sum.slowest = loads[i].slowest;
  }
  double took = now() - start;
  printf("%s: %.0f requests/s, %.0f records/s, slowest %.0f ms, %ld failures (%d connections, batch %d)\n", mode,
    sum.requests / took, sum.records / took, sum.slowest * 1000, sum.failures, connections, batch);
  return sum.failures > 0;
}
