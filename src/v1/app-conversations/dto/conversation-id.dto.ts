import { Text } from '../../../common/validation/text.decorator.js';

/** Path of `/api/v1/app-conversations/{id}`. */
export class ConversationIdDto {
  @Text({
    required: true,
    description: 'Id of the conversation: 32 hexadecimal digits, with or without dashes.',
    example: '5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f',
  })
  id: string;
}
