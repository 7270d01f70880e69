import { Injectable } from '@nestjs/common';
import { Column, Entity, type EntityManager, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { Sandbox } from '../sandboxes/sandbox.entity.js';

/** Of one sandbox: proxies that have ended go, the ones first that were not heard of for longest. */
const MAX_PROXIES = 20;

/** Up to which of its numbered calls of a sandbox a proxy has been heard. */
@Entity('egress_meters')
export class EgressMeter {
  @PrimaryColumn('text') sandboxId: string;
  @PrimaryColumn('uuid') proxy: string;
  @Column('bigint') number: string;
  @Column('timestamptz', { default: () => 'now()' }) at: Date;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

const FIRST = `
  INSERT INTO egress_meters (sandbox_id, proxy, number) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`;

/** A report that comes a second time waits here for the first. */
const LOCK = 'SELECT number FROM egress_meters WHERE sandbox_id = $1 AND proxy = $2 FOR UPDATE';

const ADVANCE = 'UPDATE egress_meters SET number = $3, at = now() WHERE sandbox_id = $1 AND proxy = $2';

const TRIM = `
  DELETE FROM egress_meters WHERE (sandbox_id, proxy) IN (
    SELECT sandbox_id, proxy FROM egress_meters WHERE sandbox_id = $1 ORDER BY at DESC OFFSET ${MAX_PROXIES})`;

@Injectable()
export class EgressMeterRepository {
  /** Those of a proxy's calls that were not counted yet, which are from now on; in the caller's transaction, which keeps the sandbox. */
  async take<Call extends { number: number }>(
    manager: EntityManager,
    { sandboxId, proxy }: Pick<EgressMeter, 'sandboxId' | 'proxy'>,
    calls: readonly Call[],
  ): Promise<Call[]> {
    const key = [sandboxId, proxy];
    await manager.query(FIRST, key);
    const [row] = await manager.query<{ number: string }[]>(LOCK, key);
    const counted = Number(row?.number ?? 0);
    const fresh = calls.filter(({ number }) => number > counted);
    if (fresh.length > 0) {
      await manager.query(ADVANCE, [...key, Math.max(...fresh.map(({ number }) => number))]);
      await manager.query(TRIM, [sandboxId]);
    }
    return fresh;
  }
}
