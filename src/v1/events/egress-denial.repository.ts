import { hash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Column, Entity, type EntityManager, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { ReportedRequest } from '@slipway/egress-proxy/protocol.js';
import { Clock } from '@slipway/common/clock.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import { EventRepository } from './store/event.repository.js';
import { EGRESS_DENIED, toStorable } from './store/storable-event.js';

/** What conversations are told of a request that was refused. */
interface ToldDenial extends Pick<ReportedRequest, 'host' | 'port' | 'rule' | 'phase'> {
  method?: string;
  reason: ReportedRequest['denied'];
}

/** A refused request that the conversations of a sandbox know of, for as long as they are not told again. */
@Entity('egress_denials')
export class EgressDenial {
  @PrimaryColumn('text') sandboxId: string;

  /** Of host, port, method, reason and phase. */
  @PrimaryColumn('text') digest: string;
  @Column('timestamptz', { default: () => 'now()' }) at: Date;

  /** No conversation had begun: the first one is told then. */
  @Column('boolean') isTold: boolean;
  @Column('jsonb') value: ToldDenial;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

/** The same is told once in this time, and of one sandbox at most so much. */
const TOLD_ONCE_IN_MINUTES = 10;
export const MAX_TOLD = 50;

/** Of one sandbox at a time: many proxies report, and conversations begin meanwhile. Until the transaction ends. */
const LOCK = "SELECT pg_advisory_xact_lock(hashtext('egress_denials'), hashtext($1))";

const FORGET = `
  DELETE FROM egress_denials
  WHERE sandbox_id = $1 AND at < now() - make_interval(mins => CASE WHEN is_told THEN ${TOLD_ONCE_IN_MINUTES} ELSE 60 END)`;

const REMEMBER = `
  INSERT INTO egress_denials (sandbox_id, digest, is_told, value)
  SELECT $1, given.digest, $3, given.value FROM jsonb_to_recordset($2::jsonb) AS given (digest text, value jsonb)
  WHERE NOT EXISTS (SELECT FROM egress_denials d WHERE d.sandbox_id = $1 AND d.digest = given.digest)
  LIMIT greatest(0, ${MAX_TOLD} - (SELECT count(*) FROM egress_denials WHERE sandbox_id = $1))
  ON CONFLICT DO NOTHING
  RETURNING value`;

const TAKE_UNTOLD = `
  UPDATE egress_denials SET is_told = true WHERE sandbox_id = $1 AND NOT is_told RETURNING value`;

/** Tells conversations what their sandbox was refused: once for all that is the same, and not without end. */
@Injectable()
export class EgressDenialRepository {
  constructor(
    private readonly events: EventRepository,
    private readonly clock: Clock,
  ) {}

  /** Tells those that are at work in the sandbox, in the caller's transaction. */
  async tell(manager: EntityManager, sandboxId: string, requests: readonly ReportedRequest[]): Promise<void> {
    const denied = requests.filter(({ denied: reason }) => reason !== null).map(toDenial);
    if (denied.length === 0) {
      return;
    }
    await manager.query(LOCK, [sandboxId]);
    await manager.query(FORGET, [sandboxId]);
    const ids = await idsAtWork(manager, sandboxId);
    const given = [...new Map(denied.map((value) => [digestOf(value), value]))];
    const fresh = await manager.query<{ value: ToldDenial }[]>(REMEMBER, [
      sandboxId,
      JSON.stringify(given.map(([digest, value]) => ({ digest, value }))),
      ids.length > 0,
    ]);
    await this.note(manager, ids, fresh);
  }

  /** Tells a conversation that begins what was refused before, as while its repository was cloned. */
  async tellBegun(manager: EntityManager, id: string, sandboxId: string): Promise<void> {
    await manager.query(LOCK, [sandboxId]);
    const [untold] = await manager.query<[{ value: ToldDenial }[], number]>(TAKE_UNTOLD, [sandboxId]);
    await this.note(manager, [id], untold);
  }

  private async note(
    manager: EntityManager,
    ids: readonly string[],
    denials: readonly { value: ToldDenial }[],
  ): Promise<void> {
    for (const { value } of denials) {
      const now = new Date(this.clock.now());
      const event = {
        kind: 'ConversationStateUpdateEvent',
        id: randomUUID(),
        timestamp: now.toISOString(),
        source: 'environment',
        key: EGRESS_DENIED,
        value,
      } as const;
      await this.events.note(manager, ids, toStorable(event, now));
    }
  }
}

/** Of the conversations in a sandbox those whose agents work, or all where none does. */
async function idsAtWork(manager: EntityManager, sandboxId: string): Promise<string[]> {
  const select = { id: true, executionStatus: true } as const;
  const all = await manager.find(FollowedConversation, { select, where: { sandboxId } });
  const working = all.filter(({ executionStatus }) => executionStatus === 'running');
  return (working.length > 0 ? working : all).map(({ id }) => id);
}

function toDenial({ host, port, method, denied: reason, rule, phase }: ReportedRequest): ToldDenial {
  return { host, port, ...(method !== null && { method }), reason, rule, phase };
}

function digestOf({ host, port, method, reason, phase }: ToldDenial): string {
  return hash('sha256', JSON.stringify([host, port, method, reason, phase]), 'base64url');
}
