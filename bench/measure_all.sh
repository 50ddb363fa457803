#!/usr/bin/env bash
# Measures everything that bench/performance_table.py makes tables of, with the names it expects.
#
#   bench/measure_all.sh LIBRARY FOLDER GPU [GROUP...]
#
# LIBRARY is libjitconv.so, GPU the first word of the files' names (h200). Groups: forward fp32 ieee gradients lists
# networks depthwise few_channels; default all of these. A group is one sequence of runs, so that groups can share a
# machine with several GPUs: CUDA_VISIBLE_DEVICES=1 bench/measure_all.sh ... networks. PART=I/N measures a part of the
# list of networks.
# Two further groups, tune and behind, measure candidates with jitconv-run (JITCONV_RUN, else beside LIBRARY's folder) for
# bench/fit_costs.py, of the rows of bench/shapes/tune.txt: PART=I/N measures a part of each list, after SECONDS_A_LIST
# (300) the rest of a list is left out.
set -uo pipefail
library=$1 folder=$2 gpu=$3
shift 3
bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shapes=$bench/../tests/shapes
mkdir -p "$folder"
failed=0

# NAME SCRIPT ARGUMENTS...: one run, its table beside its JSON.
measure() {
  local name=$1 script=$2
  shift 2
  if ! python3 "$bench/$script" --library "$library" --json "$folder/$gpu-$name.json" "$@" >"$folder/$gpu-$name.txt" \
    2>"$folder/$gpu-$name.log"; then
    echo "failed: $name"
    tail -n 3 "$folder/$gpu-$name.log"
    failed=1
  fi
  echo "$name after $SECONDS s"
}

forward() { measure "$1" compare_pytorch.py "${@:2}"; }
gradients() { measure "$1" compare_gradients.py "${@:2}"; }

dense=A,A_bias,B,B_bias,C,C_bias,D,D_bias,KB_L1_50,KB_L1_62,KB_L1_67,KB_L1_76,KB_L1_86_pw,KB_L1_87
depthwise=KB_L1_82,KB_L1_83,KB_L1_84,KB_L1_85,KB_L1_86_dw

group_forward() {
  forward forward-tf32-nchw --math tf32 --config $dense
  forward forward-tf32-nhwc --math tf32 --layout nhwc --config $dense
  forward forward-bf16-nchw --dtype bf16 --config $dense
  forward forward-bf16-nhwc --dtype bf16 --layout nhwc --config $dense
}

group_fp32() {
  forward forward-fp32-nchw --math fp32 --config $dense
  forward forward-fp32-nhwc --math fp32 --layout nhwc --config $dense
}

group_fp16x3() {
  forward forward-fp16x3-nchw --math fp16x3 --config $dense
  forward forward-fp16x3-nhwc --math fp16x3 --layout nhwc --config $dense
}

group_ieee() {
  forward forward-ieee-nchw --math ieee
}

group_gradients() {
  gradients gradients-tf32-nchw --math tf32 --config A,B,C,D,KB_L1_50,KB_L1_87,$depthwise --launches 11
  gradients gradients-bf16-nhwc --dtype bf16 --layout nhwc --config A,B,C,D --launches 11
  gradients gradients-tf32-nhwc --math tf32 --layout nhwc --config A,B,C,D --launches 11
  gradients gradients-bf16-nchw --dtype bf16 --config A,B,C,D --launches 11
  gradients gradients-ieee-nchw --math ieee --config A,B,C,D --launches 5
  gradients transposed-tf32-nchw --math tf32 --operation data_gradient --launches 11 \
    --shapes "$shapes/kernelbench_l1_transposed2d.csv"
  gradients gradients-deepbench-tf32-nchw --math tf32 --launches 11 --shapes "$shapes/deepbench_training_set.csv"
}

group_lists() {
  forward kernelbench-l2-tf32-nchw --math tf32 --bias --shapes "$shapes/kernelbench_l2_conv2d.csv"
  forward deepbench-tf32-nchw --math tf32 --shapes "$shapes/deepbench_training_set.csv"
  forward deepbench-bias-tf32-nchw --math tf32 --bias --shapes "$shapes/deepbench_training_set.csv"
  forward deepbench-tf32-nhwc --math tf32 --layout nhwc --shapes "$shapes/deepbench_training_set.csv"
}

group_networks() {
  local part=${PART:-1/1} suffix=
  [ "$part" = 1/1 ] || suffix=.${part%/*}
  for mode in tf32-nchw bf16-nhwc tf32-nhwc bf16-nchw; do
    local arguments=(--math tf32)
    [ "${mode%-*}" = tf32 ] || arguments=(--dtype bf16)
    for bias in "" -bias; do
      forward "networks$bias-$mode$suffix" "${arguments[@]}" --layout "${mode#*-}" --part "$part" ${bias:+--bias} \
        --shapes "$shapes/torchdynamo_operator_logs_torchbench.csv"
    done
  done
  local layout
  for layout in nchw nhwc; do
    forward "networks-bias-fp32-$layout$suffix" --math fp32 --layout $layout --part "$part" --bias \
      --shapes "$shapes/torchdynamo_operator_logs_torchbench.csv"
  done
}

group_few_channels() {
  local mode arguments
  for mode in tf32 bf16; do
    arguments=(--math tf32)
    [ "$mode" = tf32 ] || arguments=(--dtype bf16)
    forward "few-channels-$mode-nchw" "${arguments[@]}" --shapes "$bench/shapes/few_channels.csv"
    gradients "gradients-few-channels-$mode-nchw" "${arguments[@]}" --operation data_gradient --launches 11 \
      --shapes "$bench/shapes/few_channels.csv"
  done
}

group_depthwise() {
  forward depthwise-tf32-nhwc --math tf32 --layout nhwc --shapes "$bench/shapes/depthwise_networks.csv"
  forward depthwise-bf16-nhwc --dtype bf16 --layout nhwc --shapes "$bench/shapes/depthwise_networks.csv"
}

# NAME FIELDS...: candidates of the rows of bench/shapes/tune.txt that have this name, one file each; with PART=I/N
# those of the I-th of N parts.
tune() {
  local name=$1 run=${JITCONV_RUN:-$(dirname "$library")/../tools/jitconv-run} part=${PART:-1/1}
  local row=0 begin=$SECONDS file shape
  shift
  while read -r shape; do
    row=$((row + 1))
    [ $(((row - 1) % ${part#*/})) -eq $((${part%/*} - 1)) ] || continue
    if [ $((SECONDS - begin)) -gt "${SECONDS_A_LIST:-300}" ]; then
      echo "tune $name $*: no time for row $row and those behind it"
      break
    fi
    file=$folder/$gpu-tune-$name-$(tr -c 'a-z0-9\n' - <<<"$*")-$row
    "$run" --tune --candidates=32 --repeat=11 --no-check --quiet "--json=$file.json" "--spec=$shape $*" \
      >"$file.txt" 2>"$file.log" && continue
    echo "failed: tune $shape $*"
    tail -n 3 "$file.log"
    failed=1
  done < <(sed -n "s/^$name //p" "$bench/shapes/tune.txt")
  echo "tune $name $* after $SECONDS s"
}

group_tune() {
  local layout
  for layout in nchw nhwc; do
    local layouts=(input_layout=$layout output_layout=$layout)
    tune depthwise dtype=bf16 "${layouts[@]}"
    tune depthwise dtype=f32 "${layouts[@]}"
    tune groups dtype=bf16 "${layouts[@]}"
    tune groups dtype=f32 math=ieee "${layouts[@]}"
    tune dense dtype=bf16 math=ieee "${layouts[@]}"
    tune dense dtype=f32 math=ieee "${layouts[@]}"
    tune networks dtype=bf16 "${layouts[@]}"
    tune networks dtype=f32 math=tf32 "${layouts[@]}"
    tune dense dtype=f32 math=tf32 "${layouts[@]}"
    tune dense dtype=bf16 "${layouts[@]}"
    tune dense dtype=f32 math=tf32 operation=weight_gradient "${layouts[@]}"
    tune depthwise dtype=f32 operation=weight_gradient "${layouts[@]}"
  done
}

group_behind() {
  local layout
  for layout in nchw nhwc; do
    tune behind dtype=f32 math=tf32 input_layout=$layout output_layout=$layout
    tune behind dtype=bf16 input_layout=$layout output_layout=$layout
  done
}

[ $# -gt 0 ] || set -- forward fp32 ieee gradients lists networks depthwise few_channels
for group; do
  "group_$group"
done
exit $failed
