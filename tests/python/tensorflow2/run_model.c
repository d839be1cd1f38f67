// Runs a SavedModel with an operator library: run_model LIBRARY MODEL INPUT OUTPUT NUMBER prints what the model
// returns. SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static void check(const TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  printf("error: %s\n", TF_Message(status));
  exit(1);
}

int main(int count, char** arguments) {
  if (count != 6) {
    printf("run_model LIBRARY MODEL INPUT OUTPUT NUMBER\n");
    return 2;
  }
  TF_Status* const status = TF_NewStatus();
  TF_Library* const library = TF_LoadLibrary(arguments[1], status);
  check(status);

  // No configuration: static execution has to come from the model's calls themselves.
  TF_SessionOptions* const options = TF_NewSessionOptions();
  TF_Graph* const graph = TF_NewGraph();
  const char* const tags[] = {"serve"};
  TF_Session* const session = TF_LoadSessionFromSavedModel(options, NULL, arguments[2], tags, 1, graph, NULL, status);
  check(status);

  const int64_t number = strtoll(arguments[5], NULL, 10);
  TF_Tensor* const argument = TF_AllocateTensor(TF_INT64, NULL, 0, sizeof(number));
  memcpy(TF_TensorData(argument), &number, sizeof(number));
  const TF_Output input = {TF_GraphOperationByName(graph, arguments[3]), 0};
  const TF_Output output = {TF_GraphOperationByName(graph, arguments[4]), 0};
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &input, &argument, 1, &output, &result, 1, NULL, 0, NULL, status);
  check(status);
  printf("%lld\n", (long long)*(const int64_t*)TF_TensorData(result));

  TF_DeleteTensor(result);
  TF_DeleteTensor(argument);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteSessionOptions(options);
  TF_DeleteLibraryHandle(library);
  TF_DeleteStatus(status);
  return 0;
}
