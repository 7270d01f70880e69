import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Metrics } from '../../observability/metrics.js';
import { FollowLeaseRepository } from './follow/follow-lease.repository.js';
import { FollowersService } from './follow/followers.service.js';
import { EventPartitionRepository } from './store/event-partition.repository.js';
import { EventStreamsService } from './stream/event-streams.service.js';

@Injectable()
export class EventMetrics implements OnModuleInit {
  constructor(
    private readonly metrics: Metrics,
    private readonly leases: FollowLeaseRepository,
    private readonly followers: FollowersService,
    private readonly streams: EventStreamsService,
    private readonly partitions: EventPartitionRepository,
  ) {}

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_event_followers',
      help: 'Conversations whose events this replica copies from agent servers, by how the last read went',
      label: 'state',
      read: async () => {
        const { reading, failing } = this.followers.counts();
        return new Map([
          ['reading', reading],
          ['failing', failing],
        ]);
      },
    });
    this.metrics.addSamples({
      name: 'slipway_event_streams',
      help: 'Open streams of events to clients',
      labels: [],
      read: async () => [{ labels: {}, value: this.streams.openCount }],
    });
    this.metrics.addSamples({
      name: 'slipway_conversations_unfollowed',
      help: 'Conversations in running sandboxes whose events no replica copies',
      scope: 'database',
      labels: [],
      read: async () => [{ labels: {}, value: await this.leases.countUnfollowed() }],
    });
    this.metrics.addSamples({
      name: 'slipway_event_partitions_ahead_seconds',
      help: 'Time for which the database has partitions for new events; below 0 they go into the default one',
      scope: 'database',
      labels: [],
      read: async () => [{ labels: {}, value: await this.partitions.secondsAhead() }],
    });
  }
}
