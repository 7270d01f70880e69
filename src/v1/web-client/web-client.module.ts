import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { AbsentFeaturesController, WebClientConfigController } from './web-client.controller.js';

@Module({
  imports: [GitProvidersModule],
  controllers: [WebClientConfigController, AbsentFeaturesController],
})
export class WebClientModule {}
