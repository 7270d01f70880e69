import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, type EntityManager, Index, Not, PrimaryColumn } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { UserKeyedRow } from '../auth/user.repository.js';

/** Who counted: an egress proxy, which saw the calls, or the agent server in the sandbox. */
export type UsageSource = 'proxy' | 'sandbox';

/** What the calls of a model took in a conversation on a day (UTC). Stays when the conversation goes. */
@Entity('model_usage')
@Index('model_usage_day_idx', ['day', 'userId'])
export class ModelUsage extends UserKeyedRow {
  /** {@link NO_CONVERSATION}: of a sandbox without one. */
  @PrimaryColumn('uuid') conversationId: string;
  @PrimaryColumn('date') day: string;
  @PrimaryColumn('text') model: string;
  @PrimaryColumn('text') source: UsageSource;
  @Column('text', { nullable: true }) automationId: string | null;
  @Column('bigint') calls: string;

  /** With those from the cache of the provider and into it. */
  @Column('bigint') inputTokens: string;
  @Column('bigint') outputTokens: string;

  /** From the cache. */
  @Column('bigint') cachedTokens: string;

  /** Of calls whose price is not known. */
  @Column('bigint') unpricedTokens: string;

  /** In USD. */
  @Column('double precision') cost: number;
}

export const NO_CONVERSATION = '00000000-0000-0000-0000-000000000000';

/** Of one conversation, day and source; what programs make up besides is counted together. */
export const MAX_MODELS = 20;
export const OTHER_MODELS = 'other models';
const UNKNOWN_MODEL = 'unknown model';

/** A year can be compared with the one before to the month. */
export const USAGE_DAYS = 400;

export interface CountedUsage {
  /** `2026-11-30`. */
  day: string;
  model: string;
  calls: number;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** In USD; null where no price is known. */
  cost: number | null;
}

export interface Spender extends Omit<UsageOwner, 'userId'> {
  /** As the service knows it: what a sandbox calls it has no bound. */
  model: string | null;
}

/** Of the agent server's metrics: sums since the conversation began. */
interface ReportedMetrics {
  accumulated_cost: number;
  cost_source?: string;
  accumulated_token_usage: Record<'prompt_tokens' | 'completion_tokens' | 'cache_read_tokens', number> | null;
}

/** A sandbox may report anything. */
const MAX_TOKENS = 10_000_000_000;

export interface UsageOwner {
  userId: string;
  conversationId: string;
  /** Null: no automation started it. */
  automationId: string | null;
}

/** Of a conversation and source at a time, since what is known decides what is added. Until the transaction ends. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('model_usage'), hashtext($1))";

const KNOWN = `
  SELECT DISTINCT day::text AS day, model FROM model_usage
  WHERE user_id = $1 AND conversation_id = $2 AND source = $3 AND day = ANY ($4::date[])`;

const ADD = `
  INSERT INTO model_usage AS kept (user_id, conversation_id, source, automation_id, day, model, calls, input_tokens,
    output_tokens, cached_tokens, unpriced_tokens, cost)
  SELECT $1, $2, $3, $5, day, model, sum(calls), sum("inputTokens"), sum("outputTokens"), sum("cachedTokens"),
    sum(CASE WHEN cost IS NULL THEN "inputTokens" + "outputTokens" ELSE 0 END), sum(coalesce(cost, 0))
  FROM jsonb_to_recordset($4::jsonb) AS given (day date, model text, calls bigint, "inputTokens" bigint,
    "outputTokens" bigint, "cachedTokens" bigint, cost float8)
  GROUP BY day, model
  ON CONFLICT (user_id, conversation_id, day, model, source) DO UPDATE SET
    calls = kept.calls + excluded.calls,
    input_tokens = kept.input_tokens + excluded.input_tokens,
    output_tokens = kept.output_tokens + excluded.output_tokens,
    cached_tokens = kept.cached_tokens + excluded.cached_tokens,
    unpriced_tokens = kept.unpriced_tokens + excluded.unpriced_tokens,
    cost = kept.cost + excluded.cost`;

const COST = `
  SELECT coalesce(sum(cost), 0)::float8 AS cost FROM model_usage
  WHERE user_id = $1 AND conversation_id = $2 AND source = 'proxy'`;

const PRUNE = `
  DELETE FROM model_usage WHERE ctid IN (
    SELECT ctid FROM model_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - $1::integer LIMIT $2)`;

@Injectable()
export class ModelUsageRepository {
  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Adds to what is counted, within the caller's transaction. */
  async add(
    manager: EntityManager,
    { userId, conversationId, source, automationId }: UsageOwner & { source: UsageSource },
    counted: readonly CountedUsage[],
  ): Promise<void> {
    if (counted.length === 0) {
      return;
    }
    await manager.query(LOCK, [`${userId}:${conversationId}:${source}`]);
    const owner = [userId, conversationId, source];
    const days = [...new Set(counted.map(({ day }) => day))];
    const known = await manager.query<{ day: string; model: string }[]>(KNOWN, [...owner, days]);
    await manager.query(ADD, [...owner, JSON.stringify(withinModels(counted, known)), automationId]);
  }

  /** Adds what an agent server tells beyond what it told before, within the caller's transaction. */
  async addReported(
    manager: EntityManager,
    { model, ...owner }: UsageOwner & Spender,
    { metrics, known }: { metrics: ReportedMetrics; known: ReportedMetrics | null },
  ): Promise<void> {
    const more = (name: keyof NonNullable<ReportedMetrics['accumulated_token_usage']>): number => {
      const [now, then] = [metrics, known].map((each) => each?.accumulated_token_usage?.[name] ?? 0);
      return Math.min(MAX_TOKENS, Math.max(0, Math.round((now ?? 0) - (then ?? 0))));
    };
    const [input, output, cached] = [
      more('prompt_tokens'),
      more('completion_tokens'),
      more('cache_read_tokens'),
    ];
    const cost = Math.max(0, metrics.accumulated_cost - (known?.accumulated_cost ?? 0));
    if (input + output + cost > 0) {
      await this.add(manager, { ...owner, source: 'sandbox' }, [
        {
          day: new Date(this.clock.now()).toISOString().slice(0, 10),
          model: model ?? UNKNOWN_MODEL,
          calls: 1,
          inputTokens: input,
          outputTokens: output,
          cachedTokens: cached,
          cost: cost === 0 && metrics.cost_source === 'unknown' ? null : cost,
        },
      ]);
    }
  }

  /** What proxies have counted of a conversation, in USD. */
  async costAtProxies(manager: EntityManager, userId: string, conversationId: string): Promise<number> {
    const [row] = await manager.query<{ cost: number }[]>(COST, [userId, conversationId]);
    return row?.cost ?? 0;
  }

  /** What conversations have cost stays theirs with another user, or their budgets would begin anew. */
  async handOver(manager: EntityManager, from: string, to: string): Promise<void> {
    const ofConversations = { userId: from, conversationId: Not(NO_CONVERSATION) };
    await manager.update(ModelUsage, ofConversations, { userId: to });
  }

  /** Removes some of what is older than {@link USAGE_DAYS}. @returns how many rows */
  async prune(limit: number): Promise<number> {
    const [, removed] = await this.dataSource.query<[unknown, number]>(PRUNE, [USAGE_DAYS, limit]);
    return removed;
  }
}

/** With at most so many models of a day. */
function withinModels(
  counted: readonly CountedUsage[],
  known: readonly { day: string; model: string }[],
): CountedUsage[] {
  const models = new Map<string, Set<string>>();
  const ofDay = (day: string): Set<string> => {
    const names = models.get(day) ?? new Set();
    models.set(day, names);
    return names;
  };
  known.forEach(({ day, model }) => ofDay(day).add(model));
  return counted.map((each) => {
    const names = ofDay(each.day);
    if (!names.has(each.model) && names.size >= MAX_MODELS) {
      return { ...each, model: OTHER_MODELS };
    }
    names.add(each.model);
    return each;
  });
}
