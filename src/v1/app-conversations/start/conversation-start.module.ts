import { Module } from '@nestjs/common';
import { ConversationStarter } from './conversation-starter.js';

/** How conversations begin. */
@Module({
  providers: [ConversationStarter],
  exports: [ConversationStarter],
})
export class ConversationStartModule {}
