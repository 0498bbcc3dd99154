#pragma once

namespace soci {
class session;
}

namespace txinbox::test {

class TestDatabase;

/// Makes what `commit_late` needs.
void prepare_late_commit(const TestDatabase&);

/// Sends a COMMIT that takes the server most of a second, and cuts the connection before the answer comes. The server
/// still runs it.
void commit_late(soci::session&);

}  // namespace txinbox::test
