import { Module } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import { EgressRulebook, EgressRulebookModule } from '../../config/egress-rulebook.js';
import { loadSandboxSpecs, SandboxSpecs } from './sandbox-specs.js';
import { SandboxSpecsController } from './sandbox-specs.controller.js';

@Module({
  imports: [EgressRulebookModule],
  controllers: [SandboxSpecsController],
  providers: [
    {
      provide: SandboxSpecs,
      inject: [AppConfig, Clock, EgressRulebook],
      useFactory: async (
        { sandboxes }: AppConfig,
        clock: Clock,
        { presets }: EgressRulebook,
      ): Promise<SandboxSpecs> =>
        new SandboxSpecs(await loadSandboxSpecs(sandboxes.specsFile, new Date(clock.now()), presets)),
    },
  ],
  exports: [EgressRulebookModule, SandboxSpecs],
})
export class SandboxSpecsModule {}
