#include "backend/upsert.hpp"

#include <soci/error.h>

namespace txinbox::inline TXINBOX_ABI::backend {

bool try_insert(Session& session, const std::string& insert) {
  try {
    session.change(insert);
    return true;
  } catch (const soci::soci_error& error) {
    if (classify(error) != ErrorClass::duplicate_key) throw;
    return false;
  }
}

// Databases have each their own statement for both; rows that are made and removed all the time are nobody's
// purpose, so that the loop ends.
void change_or_insert(Session& session, const std::string& update, const std::string& insert) {
  while (session.change(update) == 0 && !try_insert(session, insert)) {
  }
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
