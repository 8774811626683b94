//! What `why` concludes from, as far as it needs nothing outside.

pub mod readings;
