"""Functions in the database: what a role may do without reading or writing the tables behind it.

They run with the rights of the store's owner. deploy/postgres/roles.sql grants them.
"""

# ruff: noqa: S608 - the statements hold numbers of ours only

from __future__ import annotations

from rappor.store.cell_key import COHORT_BITS
from rappor.store.postgres.locks import KEPT, RELEASED, STORE
from rappor.store.report_order import FULL

_HEAD = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_BITS = 60  # of randomness in the last 15 digits of a random UUID
_RANDOM = f"('x' || right(replace(gen_random_uuid()::text, '-', ''), 15))::bit({_BITS})::bigint"

# A writer is one connection. Its number is random: it tells nothing about when the writer began.
# While the connection is open it holds a lock of that number, which says that it is alive.
REGISTER_WRITER = f"""
CREATE FUNCTION rappor.register_writer() RETURNS bigint LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    new_writer bigint := (1::bigint << {_BITS}) | {_RANDOM};
BEGIN
    PERFORM pg_advisory_lock(new_writer);
    UPDATE rappor.writers SET pid = NULL WHERE pid = pg_backend_pid();
    INSERT INTO rappor.writers (writer, pid) VALUES (new_writer, pg_backend_pid());
    RETURN new_writer;
END $$
"""

# The writer of this connection, or NULL: row security compares it with the rows.
CURRENT_WRITER = f"""
CREATE FUNCTION rappor.current_writer() RETURNS bigint LANGUAGE sql STABLE {_HEAD} AS $$
    SELECT writer FROM rappor.writers WHERE pid = pg_backend_pid()
$$
"""

# All collectors insert tokens into the same part, also if their clocks differ: its primary key
# makes a token unique among transactions that run at the same time. Earlier parts do not change
# any more: the lock waits for the transactions that still write to them.
OPEN_TOKEN_DAY = f"""
CREATE FUNCTION rappor.open_token_day(new_day integer) RETURNS void LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    new_part integer;
BEGIN
    PERFORM pg_advisory_xact_lock({STORE});
    IF (SELECT s.day >= new_day FROM rappor.state s) THEN
        RETURN;
    END IF;
    UPDATE rappor.state SET part = part + 1, day = new_day RETURNING part INTO new_part;
    INSERT INTO rappor.token_parts (part, day) VALUES (new_part, new_day);
    EXECUTE format('CREATE TABLE rappor.tokens_%s (LIKE rappor.tokens INCLUDING ALL)', new_part);
    EXECUTE format(
        'ALTER TABLE rappor.tokens ATTACH PARTITION rappor.tokens_%s FOR VALUES IN (%s)',
        new_part, new_part);
END $$
"""

CHUNK_CHECKSUM = """
CREATE FUNCTION rappor.chunk_checksum(slot bigint, number integer, data bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT sha256(int8send(slot) || int4send(number) || data)
$$
"""

# One Fisher-Yates step for each new report: it takes a random place among all reports of its cell
# and cohort, and the report that was there moves to the end. So every order is equally likely,
# whichever writer sent the reports and whenever they came.
KEEP_REPORTS = f"""
CREATE FUNCTION rappor.keep_reports(p_slot bigint, p_width integer, p_reports bytea) RETURNS void
LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    v_chunks bytea[] := '{{}}';  -- those that were read, by number from 1 on
    v_total bigint;
    v_word bigint;
    v_place bigint;
    v_chunk integer;
    v_last integer;
    v_report bytea;
    v_moved bytea;
    v_at integer;
BEGIN
    PERFORM pg_advisory_xact_lock({KEPT});
    SELECT number::bigint * {FULL} + length(data) / p_width INTO v_total
        FROM rappor.reports WHERE slot = p_slot ORDER BY number DESC LIMIT 1;
    v_total := coalesce(v_total, 0);
    FOR i IN 0 .. length(p_reports) / p_width - 1 LOOP
        v_report := substr(p_reports, i * p_width + 1, p_width);
        LOOP  -- larger words would make some places more likely
            v_word := {_RANDOM};
            EXIT WHEN v_word < (1::bigint << {_BITS}) - (1::bigint << {_BITS}) % (v_total + 1);
        END LOOP;
        v_place := v_word % (v_total + 1);
        v_last := v_total / {FULL} + 1;
        IF v_chunks[v_last] IS NULL THEN
            v_chunks[v_last] := rappor.read_chunk(p_slot, v_last - 1);
        END IF;
        IF v_place < v_total THEN
            v_chunk := v_place / {FULL} + 1;
            IF v_chunks[v_chunk] IS NULL THEN
                v_chunks[v_chunk] := rappor.read_chunk(p_slot, v_chunk - 1);
            END IF;
            v_at := (v_place % {FULL}) * p_width + 1;
            v_moved := substr(v_chunks[v_chunk], v_at, p_width);
            v_chunks[v_chunk] := overlay(v_chunks[v_chunk] PLACING v_report FROM v_at FOR p_width);
            v_report := v_moved;
        END IF;
        v_chunks[v_last] := v_chunks[v_last] || v_report;
        v_total := v_total + 1;
    END LOOP;
    FOR i IN array_lower(v_chunks, 1) .. array_upper(v_chunks, 1) LOOP
        IF v_chunks[i] IS NOT NULL THEN
            INSERT INTO rappor.reports AS r (slot, number, data, checksum)
                VALUES (p_slot, i - 1, v_chunks[i],
                        rappor.chunk_checksum(p_slot, i - 1, v_chunks[i]))
                ON CONFLICT (slot, number) DO UPDATE
                SET data = excluded.data, checksum = excluded.checksum;
        END IF;
    END LOOP;
END $$
"""

# A chunk of kept reports; empty if there is none of that number.
READ_CHUNK = f"""
CREATE FUNCTION rappor.read_chunk(p_slot bigint, p_number integer) RETURNS bytea
LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    v_data bytea;
    v_checksum bytea;
BEGIN
    SELECT data, checksum INTO v_data, v_checksum
        FROM rappor.reports WHERE slot = p_slot AND number = p_number;
    IF NOT FOUND THEN
        RETURN ''::bytea;
    END IF;
    IF rappor.chunk_checksum(p_slot, p_number, v_data) <> v_checksum THEN
        RAISE EXCEPTION 'the kept reports are damaged (checksum)' USING ERRCODE = 'data_corrupted';
    END IF;
    RETURN v_data;
END $$
"""

# The checksum of an entry covers the entry before it, and the state has the last one.
APPEND_AUDIT = f"""
CREATE FUNCTION rappor.append_audit(p_at text, p_actor text, p_action text, p_detail text)
RETURNS void LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    v_size bigint;
    v_checksum bytea;
BEGIN
    SELECT size, checksum INTO v_size, v_checksum FROM rappor.audit_end FOR UPDATE;
    v_checksum := sha256(
        v_checksum
        || int4send(octet_length(p_at)) || convert_to(p_at, 'UTF8')
        || int4send(octet_length(p_actor)) || convert_to(p_actor, 'UTF8')
        || int4send(octet_length(p_action)) || convert_to(p_action, 'UTF8')
        || int4send(octet_length(p_detail)) || convert_to(p_detail, 'UTF8'));
    INSERT INTO rappor.audit (id, at, actor, action, detail, checksum)
        VALUES (v_size + 1, p_at, p_actor, p_action, p_detail, v_checksum);
    UPDATE rappor.audit_end SET size = v_size + 1, checksum = v_checksum;
END $$
"""

# Copies the rows of cells that have at least `p_step` more reports than their last copy.
RELEASE = f"""
CREATE FUNCTION rappor.release(p_cells bigint[], p_step integer) RETURNS void
LANGUAGE plpgsql {_HEAD} AS $$
DECLARE
    v_cell bigint;
BEGIN
    PERFORM pg_advisory_xact_lock({RELEASED});
    FOREACH v_cell IN ARRAY p_cells LOOP
        IF (SELECT coalesce(sum(reports), 0) FROM rappor.cells WHERE id = v_cell)
            - (SELECT coalesce(sum(reports), 0) FROM rappor.released_cells WHERE id = v_cell)
            >= p_step
        THEN
            PERFORM rappor.forget_released(ARRAY[v_cell]);
            WITH copied AS (  -- one statement: both copies are of the same moment
                INSERT INTO rappor.released_cells SELECT * FROM rappor.cells WHERE id = v_cell)
            INSERT INTO rappor.released_counts SELECT * FROM rappor.counts
                WHERE id BETWEEN v_cell << {COHORT_BITS}
                AND (v_cell << {COHORT_BITS}) | {(1 << COHORT_BITS) - 1};
        END IF;
    END LOOP;
END $$
"""

FORGET_RELEASED = f"""
CREATE FUNCTION rappor.forget_released(p_cells bigint[]) RETURNS void
LANGUAGE sql {_HEAD} AS $$
    SELECT pg_advisory_xact_lock({RELEASED});
    DELETE FROM rappor.released_counts WHERE id >> {COHORT_BITS} = ANY(p_cells);
    DELETE FROM rappor.released_cells WHERE id = ANY(p_cells);
$$
"""

# By ranges of numbers, which an index finds.
FORGET_RELEASED_BY_RANGE = f"""
CREATE OR REPLACE FUNCTION rappor.forget_released(p_cells bigint[]) RETURNS void
LANGUAGE sql {_HEAD} AS $$
    SELECT pg_advisory_xact_lock({RELEASED});
    DELETE FROM rappor.released_counts USING unnest(p_cells) AS gone(cell)
        WHERE id BETWEEN gone.cell << {COHORT_BITS}
        AND (gone.cell << {COHORT_BITS}) | {(1 << COHORT_BITS) - 1};
    DELETE FROM rappor.released_cells WHERE id = ANY(p_cells);
$$
"""

# A whole commit in one call, for rows that exist: a collector waits for one answer of the database
# instead of eight. Each statement sees what was committed before it, so what the lock guards is
# read after the lock was taken. Returns false, and writes nothing, if the writer has to look
# closer: the state is not the one that it knows, or a token is not new. It has the caller's rights.
ADD_BATCHES = f"""
CREATE FUNCTION rappor.add_batches(
    p_known integer, p_writer bigint, p_epoch bigint, p_retained integer, p_day integer,
    p_tokens bytea[], p_slots bigint[], p_data bytea[], p_checksums bytea[],
    p_cells bigint[], p_reports bigint[], p_parities bytea[], p_cell_checksums bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_part integer;
    v_rows bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({STORE});
    SELECT s.part INTO v_part FROM rappor.state s
        WHERE s.oldest <= p_known AND s.day >= p_day AND s.retained = p_retained
        AND s.epoch = p_epoch
        AND p_writer = (SELECT w.writer FROM rappor.writers w WHERE w.pid = pg_backend_pid());
    IF NOT FOUND OR EXISTS (SELECT 1 FROM rappor.tokens t WHERE t.token = ANY (p_tokens)) THEN
        RETURN false;
    END IF;
    BEGIN
        INSERT INTO rappor.tokens (token, part)
            SELECT new.token, v_part FROM unnest(p_tokens) AS new(token);
    EXCEPTION WHEN unique_violation THEN  -- another writer has just inserted one of them
        RETURN false;
    END;
    UPDATE rappor.counts c SET data = new.data, checksum = new.checksum
        FROM unnest(p_slots, p_data, p_checksums) AS new(slot, data, checksum)
        WHERE c.id = new.slot AND c.writer = p_writer;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    IF v_rows <> cardinality(p_slots) THEN
        RAISE EXCEPTION 'rows of counts are missing' USING ERRCODE = 'data_corrupted';
    END IF;
    UPDATE rappor.cells c
        SET reports = new.reports, parity = new.parity, checksum = new.checksum
        FROM unnest(p_cells, p_reports, p_parities, p_cell_checksums)
            AS new(cell, reports, parity, checksum)
        WHERE c.id = new.cell AND c.writer = p_writer;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    IF v_rows <> cardinality(p_cells) THEN
        RAISE EXCEPTION 'rows of cells are missing' USING ERRCODE = 'data_corrupted';
    END IF;
    RETURN true;
END $$
"""

FIRST = (
    REGISTER_WRITER,
    CURRENT_WRITER,
    OPEN_TOKEN_DAY,
    CHUNK_CHECKSUM,
    READ_CHUNK,
    KEEP_REPORTS,
    APPEND_AUDIT,
    FORGET_RELEASED,
    RELEASE,
)
