-- A principal for streamdp that may read one view and nothing else (Unity Catalog's words; others
-- differ little). Run as the owner of the tables.
CREATE SCHEMA IF NOT EXISTS warehouse.released;
CREATE OR REPLACE VIEW warehouse.released.rides AS
    SELECT picked_up_at, minutes, rider_id FROM warehouse.public.rides;

GRANT USE CATALOG ON CATALOG warehouse TO `streamdp`;
GRANT USE SCHEMA ON SCHEMA warehouse.released TO `streamdp`;
GRANT SELECT ON VIEW warehouse.released.rides TO `streamdp`;
