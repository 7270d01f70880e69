import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { WebhookEndpoint } from './webhook-endpoint.repository.js';

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** One event for one endpoint. The rows are both the queue and its log. */
@Entity('webhook_deliveries')
@Index('webhook_deliveries_endpoint_idx', ['endpointId', 'createdAt', 'id'])
@Index('webhook_deliveries_status_idx', ['endpointId', 'status', 'createdAt', 'id'])
@Index('webhook_deliveries_due_idx', ['endpointId', 'nextAttemptAt'], { where: `status = 'pending'` })
@Index('webhook_deliveries_created_at_idx', ['createdAt'])
export class WebhookDelivery {
  /** The same in all attempts, so that receivers recognize repetitions. */
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') endpointId: string;

  @ManyToOne(() => WebhookEndpoint, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'endpoint_id' })
  endpoint?: WebhookEndpoint;

  @Column('text') eventType: string;
  @Column('json') data: Record<string, unknown>;
  @Column('text') status: DeliveryStatus;
  @Column('integer', { default: 0 }) attempts: number;
  @Column('timestamptz') createdAt: Date;

  /** Null without a further attempt. */
  @Column('timestamptz', { nullable: true }) nextAttemptAt: Date | null;
  @Column('timestamptz', { nullable: true }) lastAttemptAt: Date | null;

  /** Null without a response. */
  @Column('integer', { nullable: true }) lastResponseStatus: number | null;
  @Column('text', { nullable: true }) lastError: string | null;
  @Column('integer', { nullable: true }) lastDurationMs: number | null;

  /** Older waiting deliveries that were removed for this one. */
  @Column('integer', { default: 0 }) dropped: number;
}
