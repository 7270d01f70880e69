import { Text } from '../../../common/validation/text.decorator.js';

/** Query of `DELETE /api/v1/sandboxes/{id}`. */
export class DeleteSandboxQueryDto {
  @Text({
    description: 'The id once more: older clients send it. It must be the one of the path.',
    example: '3Yv5mQ8hZk2LrTnBx7Wc0d',
  })
  sandbox_id?: string;
}
