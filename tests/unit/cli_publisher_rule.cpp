// The rule of publishers for `relay --exec`.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/relay/program_publisher.hpp"
#include "support/publisher_rule.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Ignores SIGPIPE as long as it lives, as the command does.
class IgnoresSigpipe {
 public:
  IgnoresSigpipe() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoresSigpipe() { std::signal(SIGPIPE, before_); }
  IgnoresSigpipe(const IgnoresSigpipe&) = delete;
  IgnoresSigpipe& operator=(const IgnoresSigpipe&) = delete;

 private:
  void (*before_)(int);
};

/// A program, and the folder in which it works: the file `held` has the ids of the messages that it has taken, and the
/// file `left` says how many messages it still answers. What it does then is in the file `then`.
template <int TimeoutSeconds>
class ProgramOfRule {
 public:
  ProgramOfRule() {
    std::string name = (std::filesystem::temp_directory_path() / "txinbox-rule-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
    folder_ = name;
    recover();
  }
  ~ProgramOfRule() { std::filesystem::remove_all(folder_); }
  ProgramOfRule(const ProgramOfRule&) = delete;
  ProgramOfRule& operator=(const ProgramOfRule&) = delete;

  Publisher publisher() const { return publisher_of("cd '" + folder_.string() + "' || exit 1\n" + script); }
  static Publisher publisher_to_nowhere() { return publisher_of("exec /no/such/program"); }
  static OutgoingMessage message(const std::string& id) { return {.topic = "stock", .payload = "{}", .id = id}; }
  static OutgoingMessage refused(const std::string& id) { return {.topic = "refused", .payload = "{}", .id = id}; }

  std::set<std::string> held() const {
    std::set<std::string> ids;
    std::ifstream file(folder_ / "held");
    for (std::string id; file >> id;) ids.insert(id);
    return ids;
  }
  void fall_silent_after(std::size_t answers) const { misbehave_after(answers, "wait"); }
  void close_after(std::size_t answers) const { misbehave_after(answers, "exit"); }
  void recover() const { misbehave_after(1'000'000, "exit"); }

 private:
  static constexpr const char* script = R"sh(
while read -r line; do
  id=${line#*\"id\":\"}; id=${id%%\"*}
  left=$(cat left)
  if [ "$left" -eq 0 ]; then
    [ "$(cat then)" = wait ] && while read -r line; do :; done
    exit 1
  fi
  echo $((left - 1)) >left
  case $line in
  *'"topic":"refused"'*) echo "{\"id\":\"$id\",\"error\":\"it is refused\"}" ;;
  *)
    echo "$id" >>held
    echo "{\"id\":\"$id\",\"published\":true}"
    ;;
  esac
done)sh";

  static Publisher publisher_of(const std::string& command) {
    const auto program = std::make_shared<cli::ProgramPublisher>(command, std::chrono::seconds(TimeoutSeconds),
                                                                 [](const std::string&) {});
    return [program](std::span<const OutgoingMessage> messages) { return (*program)(messages); };
  }

  void misbehave_after(std::size_t answers, const char* then) const {
    std::ofstream(folder_ / "left") << answers << '\n';
    std::ofstream(folder_ / "then") << then << '\n';
  }

  const IgnoresSigpipe as_the_command_;
  std::filesystem::path folder_;
};

using PatientProgram = ProgramOfRule<3600>;
using HastyProgram = ProgramOfRule<4>;

TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, PatientProgram);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_the_refused, PatientProgram);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_close, PatientProgram);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_nobody_alone, PatientProgram);
TEST_SUITE_BEGIN("timed");
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_silence, HastyProgram);
TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
