#pragma once

#include <string_view>
#include <utility>

#include "console/exit_status.hpp"

namespace txinbox::cli {

// Texts that most subcommands share.
inline constexpr std::pair<ExitStatus, std::string_view> usage_status{exit_usage, "the command line is wrong"};
inline constexpr std::pair<ExitStatus, std::string_view> database_status{exit_database, "the database cannot be used"};
inline constexpr std::pair<ExitStatus, std::string_view> output_status{exit_stopped,
                                                                       "nobody reads standard output any more"};

/// The environment variables of the command, and what each is for.
inline constexpr std::pair<std::string_view, std::string_view> variables[] = {
    {"TXINBOX_DB", "the database's URL without --db; unlike the option it may hold a password"},
    {"TXINBOX_FROM", "the broker's URL of consume without --from"},
    {"TXINBOX_KAFKA_PASSWORD", "the password for Kafka"},
    {"TXINBOX_RABBITMQ_PASSWORD", "the password for RabbitMQ"},
    {"TXINBOX_ROCKETMQ_SECRET", "the secret key for RocketMQ"},
    {"TXINBOX_REDIS_PASSWORD", "the password for Redis"},
    {"TXINBOX_SERVE_TOKEN", "the password of txinbox serve"},
    {"TXINBOX_HTTP_AUTHORIZATION", "the header Authorization for a webhook"},
};

}  // namespace txinbox::cli
