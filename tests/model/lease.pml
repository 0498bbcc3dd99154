/* The protocol of LeaseConsumer for one key: its row, two workers that are given the message again and again
 * until one acknowledges it, and all that can go wrong at any moment, so and so often. docs/internals/lease-model.md says
 * what is proven; tests/model.sh defines the bounds and variants, and the mutations that must be found wrong.
 *
 * Each statement of the protocol is one atomic step, as it is on the database. Time is how much is left of the
 * row's lease and of each worker's own deadline; a tick takes one from each. Fences come from the clock, which
 * by default is later at each grant. Variables below "ghosts" are what only the properties look at. */

#define WORKERS 2
#define LEASE 2    /* ticks */

/* How often what may happen does, in all. */
#ifndef CRASHES
#define CRASHES 0  /* of a worker, at any step; or it gives up: both leave everything as it is */
#endif
#ifndef LOSSES
#define LOSSES 0   /* replies that never arrive: the statement took effect, or not, or (LATE) will */
#endif
#ifndef THROWS
#define THROWS 0   /* handlers that throw */
#endif
#ifndef OUTLIVES
#define OUTLIVES 0 /* leases that run out though their holder is alive */
#endif
#ifndef RENEWS
#define RENEWS 0
#endif
#ifndef FORGETS
#define FORGETS 0  /* rows that an operator deletes, whatever their state */
#endif
#ifndef EVICTIONS
#define EVICTIONS 0  /* rows that the store itself removes, whatever their state */
#endif
#ifndef FAILOVERS
#define FAILOVERS 0  /* to a replica that has the row as it was at an earlier moment */
#endif
#ifndef JUMPS
#define JUMPS 0    /* of the clock, forward: the lease has run out in an instant */
#endif
#ifndef REDELIVERIES
#define REDELIVERIES 0 /* that arrive after the acknowledgement */
#endif

/* What a failed assertion shows is the property's name; each of them stays 0. */
hidden byte one_completion;     /* the row becomes consumed once, until it is forgotten */
hidden byte own_lease_only;     /* completes, renews, releases and parks nothing but the lease that was granted to it */
hidden byte own_completion;     /* who believes that it completed did */
hidden byte justified;          /* acknowledges only what was consumed or parked at some moment of this delivery */
hidden byte fences_grow;        /* each lease's fence is above all earlier ones */
hidden byte effects_in_order;   /* the service applies nothing of an older lease after something of a newer one */
hidden byte holder_not_refused; /* the service never refuses the lease that the row has */
hidden byte deadline_kept;      /* nobody takes over while the holder, by its own clock, has time left */
hidden byte no_overlap;         /* with OVERLAPS_CHECKED: no handler starts while another one runs within its deadline */
hidden byte no_second_run;      /* with SECOND_RUNS_CHECKED: no handler starts after the acknowledgement */
#define CHECK(condition, property) assert((condition) || property != 0)

mtype = { absent, consuming, consumed, parked };
mtype = { idle, reading, inserting, inserting_late, taking_over, granted, handling, renewing, completing, checking,
          releasing, parking, acknowledging };
mtype = { nothing, late_insert, late_takeover, late_renewal, late_completion, late_release, late_call };

typedef Row { mtype state; byte token, fence, left; byte grant /* ghost */ };
Row row;
bool locked;  /* TxConsumer's transaction has the row; readers see what was committed before */
bool acknowledged;

/* What each worker knows. */
byte token[WORKERS], fence[WORKERS];
byte left[WORKERS];  /* of its own deadline */
byte sent[WORKERS];  /* the same as it will be if the renewal on its way succeeds */
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
bool is_behind;  /* the replica gets no more changes */
Row replica;
#endif

/* A statement, or a service's request, that its sender has given up but that arrives all the same. */
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
