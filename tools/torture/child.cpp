#include "torture/child.hpp"

#include <csignal>
#include <system_error>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace txinbox::torture {
namespace {

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> variables = changes;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool is_changed = false;
    for (const std::string& change : changes) is_changed = is_changed || change.starts_with(name);
    if (!is_changed) variables.push_back(text);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

pid_t start(const Child& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (child.input != -1) posix_spawn_file_actions_adddup2(&actions, child.input, STDIN_FILENO);
  if (child.output != -1) posix_spawn_file_actions_adddup2(&actions, child.output, STDOUT_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t set;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  sigaddset(&set, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &set);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (child.has_own_group) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));

  auto words = child.words;
  auto variables = merged_environment(child.environment);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, child.file.c_str(), &actions, &attributes, pointers(words).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), child.file);
  return pid;
}

std::string describe_end(int wait_status) {
  if (WIFEXITED(wait_status)) return "status " + std::to_string(WEXITSTATUS(wait_status));
  return "signal " + std::to_string(WTERMSIG(wait_status));
}

}  // namespace txinbox::torture
