import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** What every event has; the rest depends on its kind. */
@ApiSchema({
  name: 'Event',
  description:
    'One event of a conversation, as its agent server wrote it: what else it has depends on its kind.',
})
export class ConversationEventDto {
  @ApiProperty({ example: 'b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f' })
  id: string;

  @ApiProperty({
    description: 'ISO 8601; UTC where no zone is given.',
    example: '2026-11-21T09:30:00.123456',
  })
  timestamp: string;

  @ApiProperty({ description: 'agent, user or environment.', example: 'agent' })
  source: string;

  @ApiProperty({
    description:
      'For example MessageEvent, ActionEvent, ObservationEvent, AgentErrorEvent, ConversationStateUpdateEvent.',
    example: 'MessageEvent',
  })
  kind: string;
}
