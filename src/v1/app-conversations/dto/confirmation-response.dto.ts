import { ApiSchema } from '@nestjs/swagger';
import { Flag } from '../../../common/validation/flag.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';

/** Body of `POST /api/v1/app-conversations/{id}/respond-to-confirmation`. */
@ApiSchema({ name: 'ConfirmationResponseRequest' })
export class ConfirmationResponseDto {
  @Flag({ required: true, description: 'Whether the agent may do what it asks for.', example: false })
  accept: boolean;

  @Text({ nullable: true, description: 'Why not; the agent reads it.', example: 'Use the staging host.' })
  reason?: string | null;
}
