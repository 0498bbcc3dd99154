/* The protocol of LeaseConsumer for one key. The model has the key's row and two workers. The broker delivers the
 * message to them until one of them acknowledges it. Faults can occur at any moment, each a limited number of times.
 * docs/internals/lease-model.md says what is proven. tests/model.sh defines the bounds, the variants, and the mutations
 * in which spin must find an error.
 *
 * Each statement of the protocol is one atomic step, as on the database. Time is a number for the rest of the row's
 * lease, and one for each worker's own deadline. A tick subtracts one from each. Fences come from the clock, which by
 * default is later at each grant. Only the properties use the variables below "Ghosts". */

#define WORKERS 2
#define LEASE 2    /* ticks */

/* How often each fault can occur in a run. */
#ifndef CRASHES
#define CRASHES 0  /* a worker crashes or gives up, at any step; nothing else changes */
#endif
#ifndef LOSSES
#define LOSSES 0   /* a reply is lost: the statement took effect, or it did not, or (LATE) it will */
#endif
#ifndef THROWS
#define THROWS 0   /* a handler throws */
#endif
#ifndef OUTLIVES
#define OUTLIVES 0 /* a lease expires although its holder is alive */
#endif
#ifndef RENEWS
#define RENEWS 0
#endif
#ifndef FORGETS
#define FORGETS 0  /* an operator deletes the row, in any state */
#endif
#ifndef EVICTIONS
#define EVICTIONS 0  /* the store itself removes the row, in any state */
#endif
#ifndef FAILOVERS
#define FAILOVERS 0  /* to a replica that has an earlier state of the row */
#endif
#ifndef JUMPS
#define JUMPS 0    /* the clock jumps forward: the lease expires at once */
#endif
#ifndef REDELIVERIES
#define REDELIVERIES 0 /* the broker redelivers after the acknowledgement */
#endif

/* The properties. A failed assertion shows the name of one of them. Their values stay 0. */
hidden byte one_completion;     /* the row becomes consumed only once, unless it is forgotten */
hidden byte own_lease_only;     /* a worker changes only the lease that was granted to it */
hidden byte own_completion;     /* a worker that believes it has completed the key has done so */
hidden byte justified;          /* a worker acknowledges only if the key was consumed or parked during this delivery */
hidden byte fences_grow;        /* each lease has a greater fence than all earlier ones */
hidden byte effects_in_order;   /* the service applies no effect of an older lease after one of a newer lease */
hidden byte holder_not_refused; /* the service never refuses the current lease of the row */
hidden byte deadline_kept;      /* nobody takes over a lease before the end of its holder's own deadline */
hidden byte no_overlap;         /* with OVERLAPS_CHECKED: no handler starts while another runs within its deadline */
hidden byte no_second_run;      /* with SECOND_RUNS_CHECKED: no handler starts after the acknowledgement */
#define CHECK(condition, property) assert((condition) || property != 0)

mtype = { absent, consuming, consumed, parked };
mtype = { idle, reading, inserting, inserting_late, taking_over, granted, handling, renewing, completing, checking,
          releasing, parking, acknowledging };
mtype = { nothing, late_insert, late_takeover, late_renewal, late_completion, late_release, late_call };

typedef Row { mtype state; byte token, fence, left; byte grant /* ghost */ };
Row row;
bool locked;  /* TxConsumer's transaction has locked the row; readers see the committed row */
bool acknowledged;

/* The knowledge of each worker. */
byte token[WORKERS], fence[WORKERS];
byte left[WORKERS];  /* the rest of its own deadline */
byte sent[WORKERS];  /* the rest of its deadline if its current renewal succeeds */
bool running[WORKERS];

byte clock, tokens;
byte service_fence;
byte crashes = CRASHES, losses = LOSSES, throws = THROWS, outlives = OUTLIVES, renews = RENEWS, forgets = FORGETS,
     jumps = JUMPS, redeliveries = REDELIVERIES;
#if EVICTIONS > 0
byte evictions = EVICTIONS;
#endif
#if FAILOVERS > 0
byte failovers = FAILOVERS;
bool is_behind;  /* the replica gets no more changes of the row */
Row replica;
#endif

/* A statement, or a request to the service, that arrives after its sender has given it up. */
mtype late = nothing;
byte late_token, late_fence, late_seen_token, late_grant;

/* Ghosts */
byte grants, newest_fence, completions, service_grant;
byte grant[WORKERS];
bool may_acknowledge[WORKERS + 1];

#include "conditions.pml"
#include "effects.pml"
#include "worker.pml"
#ifdef TX
#include "transaction.pml"
#endif
#include "environment.pml"

init {
  atomic {
    row.state = absent;
    run Worker(0);
    run Worker(1);
    run Time();
#ifdef TX
    run Transaction();
#endif
#if FORGETS > 0
    run Operator();
#endif
#if EVICTIONS + FAILOVERS > 0
    run Store();
#endif
#ifdef LATE
    run Network();
#endif
  }
}

#ifdef LIVENESS
ltl delivered { <> acknowledged }
#endif
