import { Module, type OnModuleInit } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { AppConfig } from '../../config/app-config.js';
import { HealthModule } from '../../health/health.module.js';
import { LeasedWorkModule } from '../../database/leased-work.module.js';
import { ObservabilityModule } from '../../observability/observability.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { connectPodsWith } from '@slipway/sandboxes/sandbox-connection.js';
import { IdempotencyModule } from '../idempotency/idempotency.service.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { SandboxesController } from './api/sandboxes.controller.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { SANDBOX_BACKENDS } from './backends/sandbox-backends.js';
import { HostIdentity, loadHostId, HostRegistry } from './host-identity.js';
import { BackendReadiness, BackendSweeper } from './lifecycle/backend-readiness.js';
import { DriftDetector } from './lifecycle/drift.js';
import { IdleReaper, LostHostReaper, IdlenessProbe } from './lifecycle/idle-reaper.js';
import { SandboxEgress } from './lifecycle/egress-access.js';
import { SandboxRules } from './lifecycle/sandbox-rules.js';
import { LaunchPlanner } from './lifecycle/launch-plan.js';
import { LeftOvers } from './lifecycle/left-overs.js';
import { RowRepairs } from './lifecycle/row-repairs.js';
import { SandboxReconciler } from './lifecycle/sandbox.reconciler.js';
import { AgentServerProbe, SandboxStarter } from './lifecycle/sandbox-starter.js';
import { SandboxTransitionsRunner } from './lifecycle/sandbox-transitions.runner.js';
import { SandboxWorker } from './lifecycle/sandbox.worker.js';
import {
  OrphanedSandbox,
  OrphanedSandboxRepository,
  SandboxLifecycleRepository,
} from './sandbox-lifecycle.repository.js';
import { createSandboxBackend, BackendMetrics, measured } from './sandbox-backend.factory.js';
import { SandboxCallback } from './sandbox-callback.js';
import { SandboxCreator } from './sandbox-creator.js';
import { SandboxEvents, SandboxWorkerSignal } from './sandbox-events.js';
import { SandboxHost, SandboxHostRepository } from './sandbox-host.repository.js';
import { SandboxKeyQueries } from './sandbox-key.guard.js';
import { SandboxQuota } from './sandbox-quota.js';
import { SandboxUrls } from './sandbox-urls.js';
import { Sandbox } from './sandbox.entity.js';
import { SandboxPorts } from './sandbox-ports.js';
import { SandboxMetrics } from './sandbox.metrics.js';
import { RunningSandboxQueries, SandboxQueries } from './sandbox.queries.js';
import { SandboxRepository } from './sandbox.repository.js';
import { SandboxesService } from './sandboxes.service.js';
import { WarmSandbox, WarmSandboxRepository } from './warm/warm-sandbox.repository.js';
import { WarmPrograms } from './warm/warm-programs.js';
import { WarmSandboxKeeper } from './warm/warm-sandbox.keeper.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([Sandbox, SandboxHost, OrphanedSandbox, WarmSandbox]),
    AgentServersModule,
    HealthModule,
    SandboxSpecsModule,
    IdempotencyModule,
    LeasedWorkModule,
    ObservabilityModule,
    SettingsModule,
  ],
  controllers: [SandboxesController],
  providers: [
    {
      provide: HostIdentity,
      inject: [AppConfig],
      useFactory: async ({ sandboxes, dataDir }: AppConfig): Promise<HostIdentity> => {
        const { hostBound, kind } = SANDBOX_BACKENDS[sandboxes.backend];
        // Replicas of one host share its leases and its queue of starts.
        return new HostIdentity(hostBound ? (sandboxes.hostId ?? (await loadHostId(dataDir))) : kind);
      },
    },
    {
      provide: SandboxBackend,
      inject: [AppConfig, getDataSourceToken(), HostIdentity, SandboxCallback, BackendMetrics],
      useFactory: async (
        config: AppConfig,
        dataSource: DataSource,
        { id }: HostIdentity,
        callback: SandboxCallback,
        metrics: BackendMetrics,
      ): Promise<SandboxBackend> =>
        measured(await createSandboxBackend(config, dataSource, id, () => callback.webhooksUrl), metrics),
    },
    SandboxesService,
    SandboxCreator,
    SandboxQuota,
    SandboxUrls,
    SandboxPorts,
    SandboxCallback,
    SandboxEvents,
    SandboxMetrics,
    BackendMetrics,
    SandboxRepository,
    SandboxHostRepository,
    OrphanedSandboxRepository,
    WarmSandboxRepository,
    SandboxQueries,
    SandboxKeyQueries,
    SandboxLifecycleRepository,
    RunningSandboxQueries,
    SandboxWorker,
    SandboxWorkerSignal,
    SandboxTransitionsRunner,
    SandboxStarter,
    AgentServerProbe,
    LaunchPlanner,
    SandboxEgress,
    SandboxRules,
    SandboxReconciler,
    RowRepairs,
    LeftOvers,
    DriftDetector,
    IdleReaper,
    LostHostReaper,
    IdlenessProbe,
    HostRegistry,
    BackendReadiness,
    BackendSweeper,
    WarmPrograms,
    WarmSandboxKeeper,
  ],
  exports: [
    HostIdentity,
    RunningSandboxQueries,
    SandboxCallback,
    SandboxCreator,
    SandboxEgress,
    SandboxRules,
    SandboxEvents,
    SandboxKeyQueries,
    SandboxLifecycleRepository,
    SandboxQueries,
    SandboxQuota,
    SandboxRepository,
    SandboxUrls,
    SandboxWorkerSignal,
    SandboxesService,
  ],
})
export class SandboxesModule implements OnModuleInit {
  constructor(private readonly backend: SandboxBackend) {}

  onModuleInit(): void {
    const { connect } = this.backend;
    if (connect !== null) {
      connectPodsWith(connect);
    }
  }
}
