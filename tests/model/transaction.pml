/* TxConsumer. Others see its changes of the row after its commit. */
#define TX_TOKEN 255
proctype Transaction() {
  byte seen_token, seen_fence;
  mtype step = idle;

  do
  :: atomic {
      step == idle ->
      seen_token = 0; seen_fence = 0;
      if
      :: !acknowledged -> may_acknowledge[WORKERS] = (row.state == consumed || row.state == parked)
      :: acknowledged -> break
      fi;
      step = reading
    }

  :: atomic {
      step == reading ->
      if
      :: row.state == absent -> step = inserting
      :: row.state == consumed || row.state == parked -> step = acknowledging
      :: row.state == consuming && row.left > 0 -> step = idle /* in_progress */
      :: row.state == consuming && row.left == 0 ->
        seen_token = row.token; seen_fence = row.fence;
        step = taking_over
      fi
    }

  :: atomic {
      step == inserting && !locked ->
      if
      :: row.state == absent -> locked = true; step = handling
      :: row.state != absent -> step = reading
      fi
    }

  :: atomic {
      step == taking_over && !locked ->
      if
      :: TAKES_OVER(seen_token, seen_fence) ->
        printf("TxConsumer takes over\n");
        check_deadline();
        locked = true;
        step = handling
#ifdef TX_IGNORES_ROW_COUNT
      :: !TAKES_OVER(seen_token, seen_fence) -> locked = true; step = handling
#else
      :: !TAKES_OVER(seen_token, seen_fence) -> step = reading
#endif
      fi
    }

  :: atomic {
      step == handling ->
      locked = false;
      if
      :: throws > 0 -> throws--; step = idle
      :: crashes > 0 -> crashes--; step = idle
      :: printf("TxConsumer commits\n");
        grants++;
        row.token = TX_TOKEN; row.fence = seen_fence; row.grant = grants;
        complete_row(grants);
        if
        :: step = acknowledging
        :: lose(); step = idle /* the reply about the commit is lost: the redelivery finds the row consumed */
        fi
      fi
    }

  :: atomic {
      step == acknowledging ->
      if
      :: crashes > 0 -> crashes--
      :: CHECK(may_acknowledge[WORKERS], justified); acknowledged = true
      fi;
      step = idle
    }
  od
}
