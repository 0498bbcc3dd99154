#pragma once

namespace soci {
class session;
}

namespace txinbox::test {

class TestDatabase;

/// Creates the table and the trigger that `commit_late` needs.
void prepare_late_commit(const TestDatabase&);

/// Sends a COMMIT that takes the server most of a second, and cuts the connection before the answer. The server still
/// completes the commit.
void commit_late(soci::session&);

}  // namespace txinbox::test
