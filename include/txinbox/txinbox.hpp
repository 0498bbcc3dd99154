#pragma once

/// This header includes all public headers of txinbox.

#include <txinbox/claim.hpp>
#include <txinbox/content.hpp>
#include <txinbox/delivery.hpp>
#include <txinbox/error.hpp>
#include <txinbox/event.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/idempotent.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/json_content.hpp>
#include <txinbox/json_document.hpp>
#include <txinbox/json_template.hpp>
#include <txinbox/lease.hpp>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/message.hpp>
#include <txinbox/metrics.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/pool_options.hpp>
#include <txinbox/purger.hpp>
#include <txinbox/recent_keys.hpp>
#include <txinbox/result.hpp>
#include <txinbox/retention.hpp>
#include <txinbox/retry_policy.hpp>
#include <txinbox/schema.hpp>
#include <txinbox/transaction.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>
