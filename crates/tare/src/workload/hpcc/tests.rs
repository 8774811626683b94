//! Tests of reading HPCC.
