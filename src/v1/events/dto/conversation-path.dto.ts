import { Text } from '../../../common/validation/text.decorator.js';

/** The conversation that a route is about. */
export class ConversationPathDto {
  @Text({
    description: 'Id of the conversation, with or without dashes.',
    required: true,
    format: 'uuid',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  id: string;
}
