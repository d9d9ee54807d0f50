#!/bin/sh
# One day: build the table, say that it is complete, release, build the model over the releases.
# FLIGHTS is the file that dbt reads; each step ends the script if it fails.
set -eu
day=$1
export DBT_PROFILES_DIR=.
dbt build --select flights --vars "{day: \"$day\"}"
mkdir -p done && touch "done/$day"
streamdp run --once --source flights
dbt build --select air_time_trend source:released
